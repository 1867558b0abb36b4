import { BackendConnection, BackendConnector, type BackendOptions } from './backend-connection.ts';

/** Something that needs a connection to the backend. */
export interface BackendJob {
  /** Called once, with a connection of its own until it gives it back. */
  begin(connection: BackendConnection): void;
}

/** Where connections to the backend come from. */
export interface BackendConnections {
  /** `begun`: `job.begin` was called. `waiting`: it will be, unless the job is withdrawn. `full`: it never will. */
  request(job: BackendJob): 'begun' | 'waiting' | 'full';
  /** Takes a waiting job out of the queue. */
  withdraw(job: BackendJob): void;
  /** Gives a connection back, whatever became of it. */
  release(connection: BackendConnection): void;
  /** Closes all connections; what is in progress fails. */
  destroy(): void;
}

/** How many connections there are, and how many requests may wait for one. */
export interface BackendPoolOptions extends BackendOptions {
  readonly connections: number;
  readonly waiting: number;
}

/**
 * At most `connections` requests are with the backend, each on a connection of its own, and at most `waiting` wait for one, the oldest
 * served first. The waiting ones can be withdrawn at any time, which undici's own queue does not allow. The connection used last is
 * used first, so that the others may close when fewer are needed.
 */
export class BackendPool implements BackendConnections {
  readonly #options: BackendPoolOptions;
  readonly #connector: BackendConnector;
  readonly #unused: BackendConnection[] = [];
  readonly #all = new Set<BackendConnection>();
  readonly #waiting = new Set<BackendJob>();

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

  request(job: BackendJob): 'begun' | 'waiting' | 'full' {
    const connection = this.#take();
    if (connection !== undefined) {
      job.begin(connection);
      return 'begun';
    }
    if (this.#waiting.size >= this.#options.waiting) return 'full';
    this.#waiting.add(job);
    return 'waiting';
  }

  withdraw(job: BackendJob): void {
    this.#waiting.delete(job);
  }

  release(connection: BackendConnection): void {
    if (connection.isUsable) this.#unused.push(connection);
    else this.#all.delete(connection);
    if (this.#waiting.size > 0) this.#beginOldest();
  }

  destroy(): void {
    const reason = new Error('The gateway is stopping.');
    this.#waiting.clear();
    for (const connection of this.#all) connection.destroy(reason);
    this.#all.clear();
    this.#unused.length = 0;
  }

  #take(): BackendConnection | undefined {
    const unused = this.#unused.pop();
    if (unused !== undefined) return unused;
    if (this.#all.size >= this.#options.connections) return undefined;
    const made = new BackendConnection(this.#options, this.#connector);
    this.#all.add(made);
    return made;
  }

  #beginOldest(): void {
    const [job] = this.#waiting;
    const connection = job === undefined ? undefined : this.#take();
    if (job === undefined || connection === undefined) return;
    this.#waiting.delete(job);
    job.begin(connection);
  }
}
