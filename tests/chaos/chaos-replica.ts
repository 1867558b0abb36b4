import { readdir } from 'node:fs/promises';
import { type GatewayProcess, isAlive, startGateway } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import { Intervals } from './intervals.ts';

/** Longest that workers may take to end without their primary process: requests in flight, then the usage. Milliseconds. */
const ORPHANS_MS = 60_000;
/** Longest until another worker takes a dead one's place: a second, and what a busy machine needs to start one. Milliseconds. */
const REPLACEMENT_MS = 30_000;

/** Where a replica is, and who asks it. */
interface Place extends Partial<Pick<ChaosReplica, 'frontUrl'>> {
  readonly port: number;
  readonly opsPort: number;
  readonly workers: number;
  /** None: nobody asks it for decisions. */
  readonly authorizePort?: number;
}

/** What went wrong with an end or a start. */
export interface ReplicaFault {
  readonly what: string;
  readonly at: number;
  /** When it was asked to end, where it said that it could not write its usage until its end. */
  readonly usageLostFrom: number | undefined;
}

/** A replica that keeps its ports over restarts: one process, or a primary process with workers. */
export class ChaosReplica {
  readonly url: string;
  readonly opsUrl: string;
  /** Of nginx that asks this replica before it forwards; undefined where there is none. */
  readonly frontUrl: string | undefined;
  /** `WORKERS`. */
  readonly workers: number;
  /** From its stop signal until it is ready again: a request in that time may get no connection. */
  readonly absences = new Intervals();
  /** When it, or one of its workers, was killed without notice. */
  readonly killedAt: number[] = [];
  /** When it was asked to end. */
  readonly terminatedAt: number[] = [];
  /** What went wrong with ends and starts. */
  readonly faults: ReplicaFault[] = [];
  readonly #environment: Readonly<Record<string, string>>;
  #process: GatewayProcess | undefined;

  constructor(
    environment: Readonly<Record<string, string>>,
    { port, opsPort, workers, authorizePort, frontUrl }: Place,
  ) {
    this.url = `http://127.0.0.1:${port}`;
    this.opsUrl = `http://127.0.0.1:${opsPort}`;
    this.frontUrl = frontUrl;
    this.workers = workers;
    this.#environment = {
      ...environment,
      PORT: String(port),
      OPS_PORT: String(opsPort),
      WORKERS: String(workers),
      ...(authorizePort !== undefined && { AUTHORIZE_PORT: String(authorizePort) }),
    };
  }

  /** Resolves once it listens; whether it is ready depends on the stores. */
  async start(): Promise<void> {
    this.#process = await startGateway(this.#environment, { isReady: false });
    this.absences.end();
  }

  /** Its processes that live, those of its workers last. */
  pids(): readonly number[] {
    return this.#process === undefined ? [] : [this.#process.pid, ...this.#process.workerPids()];
  }

  /** Kills all of its processes. */
  async kill(): Promise<void> {
    this.absences.begin();
    this.killedAt.push(performance.now());
    const workers = this.#process?.workerPids() ?? [];
    const isOver = this.#process?.kill();
    for (const pid of workers) killProcess(pid);
    await isOver;
    await until(() => !workers.some(isAlive));
  }

  /** Kills one of the workers, which another one replaces. Resolves when its connections are gone. */
  async killWorker(index: number): Promise<void> {
    const workers = this.#process?.workerPids() ?? [];
    const pid = workers[index % workers.length];
    if (pid === undefined) throw new Error('there is no worker to kill');
    this.absences.begin();
    this.killedAt.push(performance.now());
    killProcess(pid);
    await until(() => !isAlive(pid));
    // The clients, who live in this process, have to know first.
    await new Promise(setImmediate);
    this.absences.end();
  }

  /** Kills the primary process. The workers finish what they have and end by themselves; this is waited for. */
  async killPrimary(): Promise<void> {
    this.absences.begin();
    const workers = this.#process?.workerPids() ?? [];
    // As if they were asked: what they hold they write, if they can.
    this.terminatedAt.push(performance.now());
    await this.#process?.kill();
    await until(() => !workers.some(isAlive), { timeoutMs: ORPHANS_MS }).catch(() => {
      this.#noteFault(`workers went on for ${ORPHANS_MS} ms without their primary process`);
    });
  }

  /** Resolves once all of its workers live again; that none takes a dead one's place is noted. */
  async isComplete(): Promise<void> {
    if (this.workers === 1) return;
    await until(() => this.#process?.workerPids().length === this.workers, {
      timeoutMs: REPLACEMENT_MS,
    }).catch(() => {
      this.#noteFault(`no worker took the place of one that died within ${REPLACEMENT_MS} ms`);
    });
  }

  /** Stops all of its processes where they are, as a paused machine does. */
  freeze(): void {
    this.#signal('SIGSTOP');
  }

  /** Lets them go on. */
  thaw(): void {
    this.#signal('SIGCONT');
  }

  #signal(signal: NodeJS.Signals): void {
    for (const pid of this.pids()) {
      if (isAlive(pid)) process.kill(pid, signal);
    }
  }

  /** Asks it to end, and notes when it does not end cleanly. */
  async terminate(): Promise<void> {
    this.absences.begin();
    const since = performance.now();
    this.terminatedAt.push(since);
    const code = await this.#process?.stop();
    if (code !== 0) {
      const what = `a replica exited with code ${code} after SIGTERM:\n${this.lastWords()}`;
      this.#noteFault(what, /"msg":"usage was lost at the stop"/.test(this.lastWords()) ? since : undefined);
    }
  }

  #noteFault(what: string, usageLostFrom?: number): void {
    this.faults.push({ what, usageLostFrom, at: performance.now() });
  }

  /** The last that it wrote, to tell why it is not what it should be. */
  lastWords(): string {
    return this.#process?.output().slice(-3000) ?? '';
  }

  /** Open files and sockets of the process that has most of them. NaN where the system does not tell. */
  async openFiles(): Promise<number> {
    const counts = await Promise.all(
      this.pids().map((pid) =>
        readdir(`/proc/${pid}/fd`).then(
          (names) => names.length,
          () => Number.NaN,
        ),
      ),
    );
    return Math.max(...counts);
  }
}

function killProcess(pid: number): void {
  // It may have died of something else in the meantime.
  if (isAlive(pid)) process.kill(pid, 'SIGKILL');
}
