import cluster, { type Worker } from 'node:cluster';
import { KeyMetrics } from '../../observability/key-metrics.ts';
import { WorkerMetrics } from '../../observability/worker-metrics.ts';
import type { Platform } from '../../platform/platform.ts';
import { StartFault } from '../../platform/process/start-fault.ts';
import type { StartFiles } from '../../platform/process/start-files.ts';
import { claimPort, type Release } from '../../server/port-claim.ts';
import { maskedSettings, type Settings } from '../../settings/settings.ts';
import { listenAt } from '../listen.ts';
import { type Gateway, openGateway } from '../ops/ops-port.ts';
import { Watchdog } from './watchdog.ts';
import {
  type FilesMessage,
  isWorkerMessage,
  type ReportRequest,
  type WorkerMessage,
} from './worker-messages.ts';

type Report = WorkerMessage & { readonly type: 'report' };
type Listening = WorkerMessage & { readonly type: 'listening' };

/** The pause between the end of a worker and the start of its replacement. Milliseconds. */
const RESTART_MS = 1000;
/**
 * The longest that a worker may take to report: half of the timeout of the probe in `k8s/`, so that a stuck worker does not fail the
 * probe. Milliseconds.
 */
const REPORT_DEADLINE_MS = 1000;
/** How often workers must report, also while the ops port has no requests: otherwise no stuck worker would be found. Milliseconds. */
const REPORT_INTERVAL_MS = 5000;
/** How long closing everything may take beyond `SHUTDOWN_DELAY_MS` and `SHUTDOWN_DRAIN_MS`. Milliseconds. */
const STOP_MARGIN_MS = 55_000;

/**
 * Runs `WORKERS` replicas on one machine, each in its own process. They listen on the same ports, and the system spreads connections
 * over them. This process has the ops port, which reports on all workers, and replaces a worker that dies. Rejects if one can't start.
 */
export async function startWorkerGroup(
  settings: Settings,
  platform: Platform,
  files: StartFiles,
): Promise<Gateway> {
  const { log } = platform;
  const group = new WorkerGroup(settings, platform, files);
  log.info({ settings: maskedSettings(settings) }, 'starting workers');
  const ports = await group.start();
  const ops = { readiness: () => group.readiness(), metrics: () => group.metrics() };
  return openGateway({ ...ports, ops, stop: () => group.stop() }, settings, log);
}

class WorkerGroup {
  readonly #settings: Settings;
  readonly #log: Platform['log'];
  readonly #clock: Platform['clock'];
  readonly #files: StartFiles;
  /** By request number: takes the report, if the worker makes it in time. */
  readonly #waiting = new Map<number, (report: Report) => void>();
  readonly #listening = new WeakSet<Worker>();
  /** The last report of each worker, in time or not. */
  readonly #readiness = new WeakMap<Worker, Report['readiness']>();
  readonly #metrics: WorkerMetrics;
  readonly #watchdog: Watchdog<Worker>;
  readonly #claims: Release[] = [];
  #requests = 0;
  #hasBeenReady = false;
  #watch: NodeJS.Timeout | undefined;
  #isStopping = false;

  constructor(settings: Settings, { log, clock }: Platform, files: StartFiles) {
    this.#settings = settings;
    this.#log = log;
    this.#clock = clock;
    this.#files = files;
    const { metricsPerKey } = settings;
    this.#metrics = new WorkerMetrics(
      metricsPerKey === 0 ? undefined : new KeyMetrics(metricsPerKey, () => clock.monotonicMs()),
    );
    this.#watchdog = new Watchdog(clock);
  }

  async start(): Promise<Listening> {
    await this.#claimPorts();
    // The system spreads connections more evenly than a primary process that passes them on, and without an extra hop.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    const first = await Promise.all(Array.from({ length: this.#settings.workers }, () => this.#fork())).catch(
      async (error: unknown) => {
        await this.stop();
        throw error;
      },
    );
    const [listening] = first;
    if (listening === undefined) throw new Error('A worker group needs a worker.');
    this.#watch = setInterval(() => void this.#requestReports(), REPORT_INTERVAL_MS).unref();
    return listening;
  }

  /** Ready if at least one worker is ready and responds. For each component it has the first fault that a worker reports. */
  async readiness(): Promise<{
    readonly ready: boolean;
    readonly components: Readonly<Record<string, string>>;
  }> {
    const reports = await this.#requestReports();
    const components: Record<string, string> = {};
    // Late reports count as well: a worker that starts while a store hangs reports the fault, but late.
    for (const worker of this.#workers()) {
      for (const [name, state] of Object.entries(this.#readiness.get(worker)?.components ?? {})) {
        if (components[name] === undefined || components[name] === 'ok') components[name] = state;
      }
    }
    const ready = [...reports.values()].filter(({ readiness }) => readiness.ready).length;
    components.workers =
      ready === this.#settings.workers ? 'ok' : `${ready} of ${this.#settings.workers} ready`;
    if (this.#isStopping) components.replica = 'shutting down';
    return { ready: ready > 0 && !this.#isStopping, components };
  }

  async metrics(): Promise<{ readonly contentType: string; readonly text: string }> {
    const reports = await this.#requestReports(this.#clock.nowMs() + REPORT_DEADLINE_MS);
    return this.#metrics.merged(new Map([...reports].map(([id, { snapshot }]) => [id, snapshot.metrics])));
  }

  async stop(): Promise<boolean> {
    this.#isStopping = true;
    clearInterval(this.#watch);
    await Promise.all(this.#claims.map((release) => release()));
    const { shutdownDelayMs, shutdownDrainMs } = this.#settings;
    const deadlineMs = shutdownDelayMs + shutdownDrainMs + STOP_MARGIN_MS;
    const areClean = await Promise.all(
      this.#workers().map(async (worker) => {
        // A worker that is still starting has no requests to finish, and a signal may end it before it handles signals.
        const hasListened = this.#listening.has(worker);
        const code = await ended(worker, deadlineMs);
        return code === 0 || !hasListened;
      }),
    );
    return areClean.every(Boolean);
  }

  /** Workers share their ports with any other process that shares them, and can't tell: this rejects if a port is already in use. */
  async #claimPorts(): Promise<void> {
    const { port, adminPort, authorizePort, host, authorizeHost } = this.#settings;
    const places = [
      { port, host, portSetting: 'PORT', hostSetting: 'HOST' },
      { port: adminPort, host, portSetting: 'ADMIN_PORT', hostSetting: 'HOST' },
      {
        port: authorizePort,
        host: authorizeHost,
        portSetting: 'AUTHORIZE_PORT',
        hostSetting: 'AUTHORIZE_HOST',
      },
    ] as const;
    for (const { port, ...place } of places)
      if (port !== null) this.#claims.push(await listenAt({ ...place, port }, claimPort));
  }

  /** Starts a worker. Resolves once it listens. Rejects with a `StartFault` if it can't be started, or ends before it listens. */
  async #fork(): Promise<Listening> {
    const worker = await startedWorker();
    this.#metrics.started(worker.id);
    this.#log.info({ worker: worker.process.pid }, 'a worker starts');
    const listening = Promise.withResolvers<Listening>();
    worker.on('message', (message: unknown) => {
      if (!isWorkerMessage(message)) return;
      if (message.type === 'files-request') {
        // If this fails, the worker has ended, which its exit event says.
        worker.send(this.#filesMessage(), () => {});
      } else if (message.type === 'report') {
        this.#note(worker, message);
      } else {
        this.#listening.add(worker);
        listening.resolve(message);
      }
    });
    // For example, a response of Node's own to a worker that has just been killed.
    worker.on('error', (error) =>
      this.#log.warn(
        { worker: worker.process.pid, reason: error.message },
        'a message did not reach a worker',
      ),
    );
    worker.once('exit', (code, signal) => {
      this.#metrics.ended(worker.id);
      if (!this.#listening.has(worker)) {
        listening.reject(
          new StartFault(`A worker ended with code ${code} before it listened: it has said why above.`),
        );
        return;
      }
      if (this.#isStopping) return;
      this.#log.error(
        { worker: worker.process.pid, code, signal },
        'a worker died; another one takes its place',
      );
      this.#replace();
    });
    return listening.promise;
  }

  #filesMessage(): FilesMessage {
    return { type: 'files', contents: this.#files.contents(), isConfigured: this.#hasBeenReady };
  }

  /** Starts a worker in place of one that died. If that fails, it tries again. */
  #replace(): void {
    setTimeout(() => {
      if (this.#isStopping) return;
      this.#fork().then(
        () => this.#log.info('a worker took the place of one that died'),
        (error: StartFault) => {
          if (this.#isStopping) return;
          this.#log.error({ reason: error.message }, 'a worker did not start; this is tried again');
          this.#replace();
        },
      );
    }, RESTART_MS);
  }

  #note(worker: Worker, report: Report): void {
    const { number, readiness, snapshot } = report;
    this.#watchdog.reset(worker);
    this.#readiness.set(worker, readiness);
    this.#hasBeenReady ||= readiness.ready;
    this.#metrics.update(worker.id, snapshot);
    this.#waiting.get(number)?.(report);
  }

  /**
   * Requests a report from every worker. Resolves with those that came in time, by the worker's id; the other workers are starting,
   * stopping or stuck.
   */
  async #requestReports(scrapeUntilMs: number | null = null): Promise<ReadonlyMap<number, Report>> {
    const reports = new Map<number, Report>();
    await Promise.all(
      this.#workers().map(async (worker) => {
        const report = await this.#requestReport(worker, scrapeUntilMs);
        if (report !== undefined) reports.set(worker.id, report);
      }),
    );
    return reports;
  }

  async #requestReport(worker: Worker, scrapeUntilMs: number | null): Promise<Report | undefined> {
    const number = ++this.#requests;
    const response = Promise.withResolvers<Report | undefined>();
    const timer = setTimeout(() => {
      response.resolve(undefined);
      this.#overdue(worker);
    }, REPORT_DEADLINE_MS);
    this.#waiting.set(number, response.resolve);
    try {
      if (!worker.isConnected()) return undefined;
      const request: ReportRequest = { type: 'report-request', number, scrapeUntilMs };
      worker.send(request, (error) => {
        if (error) response.resolve(undefined);
      });
      return await response.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(number);
    }
  }

  /** Kills a stuck worker so that it is replaced: the system would go on giving it connections that it never serves. */
  #overdue(worker: Worker): void {
    if (this.#isStopping || !this.#listening.has(worker) || !this.#watchdog.isExpired(worker)) return;
    this.#log.error({ worker: worker.process.pid }, 'a worker is stuck and is killed');
    worker.process.kill('SIGKILL');
  }

  #workers(): readonly Worker[] {
    return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  }
}

/** Starts a worker process. Rejects with a `StartFault` if the system can't: Node throws some of its errors and emits others. */
function startedWorker(): Promise<Worker> {
  return new Promise<Worker>((resolve, reject) => {
    const worker = cluster.fork();
    if (worker.process.pid === undefined) worker.once('error', reject);
    else resolve(worker);
  }).catch((cause: Error) => {
    throw new StartFault(`A worker process could not be started: ${cause.message}`, { cause });
  });
}

/** Stops a worker. Resolves with its exit code, or null if a signal ended it. */
function ended({ process: child }: Worker, deadlineMs: number): Promise<number | null> {
  return new Promise((resolve) => {
    // The cluster still lists a worker that has just died, and its exit event does not come again.
    if (child.exitCode !== null || child.signalCode !== null) {
      resolve(child.exitCode);
      return;
    }
    const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs);
    child.once('exit', (code) => {
      clearTimeout(timer);
      resolve(code);
    });
    child.kill('SIGTERM');
  });
}
