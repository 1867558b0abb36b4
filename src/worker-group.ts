import cluster, { type Worker } from 'node:cluster';
import type { Settings } from './config.ts';
import { maskedSettings } from './config.ts';
import { mergeMetrics } from './observability/merge-metrics.ts';
import { openOpsPort } from './ops-port.ts';
import type { Platform } from './platform/platform.ts';
import type { Gateway } from './single-process.ts';
import { isWorkerMessage, type WorkerMessage } from './worker-messages.ts';

type Report = WorkerMessage & { readonly tell: 'report' };
type Listening = WorkerMessage & { readonly tell: 'listening' };

/** Between the end of a worker and the start of the one that takes its place. Milliseconds. */
const RESTART_MS = 1000;
/** Longest that a worker may take to report. Milliseconds. */
const REPORT_DEADLINE_MS = 3000;
/** What closing everything may take beyond `SHUTDOWN_DELAY_MS` and `SHUTDOWN_DRAIN_MS`. Milliseconds. */
const STOP_MARGIN_MS = 45_000;

/**
 * `WORKERS` replicas of one machine in a process each. They listen on the same ports, and the system spreads connections over them; this
 * process has the ops port, which speaks for all, and starts a worker anew when one dies. Rejects when a worker can't start.
 */
export async function startWorkerGroup(settings: Settings, { log }: Platform): Promise<Gateway> {
  const group = new WorkerGroup(settings, log);
  log.info({ settings: maskedSettings(settings) }, 'starting workers');
  const { port, adminPort } = await group.start();
  const ops = await openOpsPort(
    { readiness: () => group.readiness(), metrics: () => group.metrics() },
    settings,
  ).catch(async (error: unknown) => {
    await group.stop();
    throw error;
  });
  const ports = { port, adminPort, opsPort: ops.port };
  log.info({ ...ports, workers: settings.workers }, 'listening');
  return {
    ...ports,
    ready: async () => {
      while (!(await group.readiness()).ready) await pause(20);
    },
    stop: async () => {
      const isClean = await group.stop();
      await ops.close();
      return isClean;
    },
  };
}

class WorkerGroup {
  readonly #settings: Settings;
  readonly #log: Platform['log'];
  readonly #waiting = new Map<number, (report: Report) => void>();
  readonly #listening = new WeakSet<Worker>();
  #asked = 0;
  #isStopping = false;

  constructor(settings: Settings, log: Platform['log']) {
    this.#settings = settings;
    this.#log = log;
  }

  async start(): Promise<Listening> {
    // The system spreads connections more evenly than a primary process that hands them over, and without a hop.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    const first = await Promise.all(Array.from({ length: this.#settings.workers }, () => this.#fork())).catch(
      async (error: unknown) => {
        await this.stop();
        throw error;
      },
    );
    const [listening] = first;
    if (listening === undefined) throw new Error('A worker group needs a worker.');
    return listening;
  }

  /** Ready when all of the workers are; of each component the first fault that one of them has. */
  async readiness(): Promise<{
    readonly ready: boolean;
    readonly components: Readonly<Record<string, string>>;
  }> {
    const reports = await this.#reports();
    const components: Record<string, string> = {};
    for (const { readiness } of reports) {
      for (const [name, state] of Object.entries(readiness.components)) {
        if (components[name] === undefined || components[name] === 'ok') components[name] = state;
      }
    }
    const answering = reports.filter(({ readiness }) => readiness.ready).length;
    components.workers =
      answering === this.#settings.workers ? 'ok' : `${answering} of ${this.#settings.workers} ready`;
    if (this.#isStopping) components.replica = 'shutting down';
    return { ready: answering > 0 && !this.#isStopping, components };
  }

  async metrics(): Promise<{ readonly contentType: string; readonly text: string }> {
    return mergeMetrics((await this.#reports()).map((report) => report.metrics));
  }

  async stop(): Promise<boolean> {
    this.#isStopping = true;
    const { shutdownDelayMs, shutdownDrainMs } = this.#settings;
    const deadlineMs = shutdownDelayMs + shutdownDrainMs + STOP_MARGIN_MS;
    const areClean = await Promise.all(
      this.#workers().map(async (worker) => {
        // One that is only starting has nothing to finish, and a signal may end it before it knows what to do.
        const hasListened = this.#listening.has(worker);
        const code = await ended(worker, deadlineMs);
        return code === 0 || !hasListened;
      }),
    );
    return areClean.every(Boolean);
  }

  /** Starts a worker. Resolves once it listens; rejects when it ends before. */
  #fork(): Promise<Listening> {
    const worker = cluster.fork();
    this.#log.info({ worker: worker.process.pid }, 'a worker starts');
    const listening = Promise.withResolvers<Listening>();
    worker.on('message', (message: unknown) => {
      if (!isWorkerMessage(message)) return;
      if (message.tell === 'report') {
        this.#waiting.get(message.number)?.(message);
        return;
      }
      this.#listening.add(worker);
      listening.resolve(message);
    });
    worker.once('exit', (code, signal) => {
      if (this.#listening.has(worker)) this.#replace(worker, code, signal);
      else
        listening.reject(new Error(`A worker ended with code ${code} before it listened; its log says why.`));
    });
    return listening.promise;
  }

  #replace(worker: Worker, code: number, signal: string | null): void {
    if (this.#isStopping) return;
    this.#log.error({ pid: worker.process.pid, code, signal }, 'a worker died; another one takes its place');
    setTimeout(() => {
      if (this.#isStopping) return;
      this.#fork().then(
        () => this.#log.info('a worker took the place of one that died'),
        () => this.#replace(worker, code, signal),
      );
    }, RESTART_MS);
  }

  async #reports(): Promise<readonly Report[]> {
    const reports = await Promise.all(this.#workers().map((worker) => this.#report(worker)));
    return reports.filter((report) => report !== undefined);
  }

  /** Undefined when the worker does not report in time: it is starting, stopping or stuck. */
  async #report(worker: Worker): Promise<Report | undefined> {
    const number = ++this.#asked;
    const answer = Promise.withResolvers<Report | undefined>();
    const timer = setTimeout(() => answer.resolve(undefined), REPORT_DEADLINE_MS);
    this.#waiting.set(number, answer.resolve);
    try {
      if (!worker.isConnected()) return undefined;
      worker.send({ ask: 'report', number }, (error) => {
        if (error) answer.resolve(undefined);
      });
      return await answer.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(number);
    }
  }

  #workers(): readonly Worker[] {
    return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  }
}

/** Tells a worker to stop. Resolves with its exit code, null when a signal ended it. */
function ended({ process: child }: Worker, deadlineMs: number): Promise<number | null> {
  return new Promise((resolve) => {
    // The cluster still names a worker that has just died, and its end is not told a second time.
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

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
