import type { Clock } from '../platform/clock.ts';
import { BackendConnection } from './backend-connection.ts';
import { BackendConnector, type BackendOptions } from './backend-connector.ts';

/** Something that needs a connection to the backend. */
export interface BackendJob {
  /** Called once, with a connection of its own until it gives it back, and with the time by the monotonic clock. Milliseconds. */
  begin(connection: BackendConnection, nowMs: number): void;
}

/** Where connections to the backend come from. `nowMs` is the time by the monotonic clock, in milliseconds, which its callers have read anyhow. */
export interface BackendConnections {
  /** `begun`: `job.begin` was called. `waiting`: it will be, unless the job is withdrawn. `full`: it never will. */
  request(job: BackendJob, nowMs: number): 'begun' | 'waiting' | 'full';
  /** Takes a waiting job out of the queue. */
  withdraw(job: BackendJob): void;
  /** Gives a connection back, whatever became of it. */
  release(connection: BackendConnection, nowMs: number): void;
  /** Takes a connection that closed, and gives a new one in its place. */
  renew(connection: BackendConnection): BackendConnection;
  /** Closes all connections; what is in progress fails. */
  destroy(): void;
}

/** How many connections there are, and how many requests may wait for one. */
export interface BackendPoolOptions extends BackendOptions {
  readonly clock: Clock;
  readonly connections: number;
  readonly waiting: number;
}

/** How often unused connections are looked through. Milliseconds. */
const LOOK_MS = 500;

/**
 * At most `connections` requests are with the backend, each on a connection of its own, and at most `waiting` wait for one, the oldest
 * served first. The connection used last is used first, so that the others may close when fewer are needed.
 */
export class BackendPool implements BackendConnections {
  readonly #options: BackendPoolOptions;
  readonly #connector: BackendConnector;
  /** The one that was used last is the last. */
  readonly #unused: BackendConnection[] = [];
  readonly #all = new Set<BackendConnection>();
  readonly #waiting = new Set<BackendJob>();
  readonly #onGone = (connection: BackendConnection): void => this.#forget(connection);
  #lookingThrough: NodeJS.Timeout | undefined;

  constructor(options: BackendPoolOptions) {
    this.#options = options;
    this.#connector = new BackendConnector(options);
  }

  /** Requests that wait for a connection now. */
  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** Requests that have a connection now. */
  get busyCount(): number {
    return this.#all.size - this.#unused.length;
  }

  /** Connections made since the start. */
  get connects(): number {
    return this.#connector.opened;
  }

  request(job: BackendJob, nowMs: number): 'begun' | 'waiting' | 'full' {
    const connection = this.#take(nowMs);
    if (connection !== undefined) {
      job.begin(connection, nowMs);
      return 'begun';
    }
    if (this.#waiting.size >= this.#options.waiting) return 'full';
    this.#waiting.add(job);
    return 'waiting';
  }

  withdraw(job: BackendJob): void {
    this.#waiting.delete(job);
  }

  release(connection: BackendConnection, nowMs: number): void {
    if (connection.isUsable) {
      connection.unusedSinceMs = nowMs;
      this.#unused.push(connection);
      this.#lookingThrough ??= setTimeout(() => this.#lookThrough(), LOOK_MS).unref();
    } else {
      this.#all.delete(connection);
    }
    if (this.#waiting.size > 0) this.#beginOldest(nowMs);
  }

  renew(connection: BackendConnection): BackendConnection {
    this.#all.delete(connection);
    return this.#make();
  }

  destroy(): void {
    clearTimeout(this.#lookingThrough);
    this.#waiting.clear();
    for (const connection of this.#all) connection.destroy();
    this.#all.clear();
  }

  #take(nowMs: number): BackendConnection | undefined {
    // What the process slept through is found here: the backend may have closed it meanwhile.
    for (let last = this.#unused.pop(); last !== undefined; last = this.#unused.pop()) {
      if (!isOld(last, nowMs)) return last;
      this.#all.delete(last);
      last.destroy();
    }
    return this.#all.size < this.#options.connections ? this.#make() : undefined;
  }

  #make(): BackendConnection {
    const made = new BackendConnection(this.#options, this.#connector, this.#onGone);
    this.#all.add(made);
    return made;
  }

  #beginOldest(nowMs: number): void {
    const [job] = this.#waiting;
    const connection = job === undefined ? undefined : this.#take(nowMs);
    if (job === undefined || connection === undefined) return;
    this.#waiting.delete(job);
    job.begin(connection, nowMs);
  }

  /** A busy connection that is gone is forgotten when it is given back. */
  #forget(connection: BackendConnection): void {
    const index = this.#unused.indexOf(connection);
    if (index === -1) return;
    this.#unused.splice(index, 1);
    this.#all.delete(connection);
  }

  #lookThrough(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const connection of this.#unused.filter((unused) => isOld(unused, nowMs))) connection.destroy();
    this.#lookingThrough =
      this.#unused.length === 0 ? undefined : setTimeout(() => this.#lookThrough(), LOOK_MS).unref();
  }
}

/** An unused connection that the backend may be about to close. */
function isOld({ unusedSinceMs, unusedMs }: BackendConnection, nowMs: number): boolean {
  return nowMs - unusedSinceMs >= unusedMs;
}
