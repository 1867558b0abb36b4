import { BackendConnection } from './backend-connection.ts';
import { BackendConnector, type BackendOptions } from './backend-connector.ts';
import type { BackendConnections, BackendJob } from './backend-pool.ts';

/**
 * Connections for upgrades: one for each, made for it and never used for anything else, whatever the backend answers. Once a
 * connection is switched it belongs to its tunnel.
 */
export class DedicatedConnections implements BackendConnections {
  readonly #options: BackendOptions;
  readonly #connector: BackendConnector;
  readonly #isFull: (pending: number) => boolean;
  readonly #pending = new Set<BackendConnection>();

  /** `isFull` is told how many connections have not been switched yet. */
  constructor(options: BackendOptions, isFull: (pending: number) => boolean) {
    this.#options = options;
    this.#connector = new BackendConnector(options);
    this.#isFull = isFull;
  }

  /** Connections made since the start. */
  get connects(): number {
    return this.#connector.opened;
  }

  request(job: BackendJob, nowMs: number): 'begun' | 'full' {
    if (this.#isFull(this.#pending.size)) return 'full';
    job.begin(this.#make(), nowMs);
    return 'begun';
  }

  /** Nothing ever waits here. */
  withdraw(): void {}

  release(connection: BackendConnection): void {
    this.#pending.delete(connection);
    connection.destroy();
  }

  renew(connection: BackendConnection): BackendConnection {
    this.#pending.delete(connection);
    return this.#make();
  }

  destroy(): void {
    for (const connection of this.#pending) connection.destroy();
  }

  #make(): BackendConnection {
    const made = new BackendConnection(this.#options, this.#connector, (gone) => this.#pending.delete(gone));
    this.#pending.add(made);
    return made;
  }
}
