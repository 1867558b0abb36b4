import type { Socket } from 'node:net';
import { BackendConnection, type ConnectionOwner } from '../connection.ts';
import { BackendConnector, type BackendOptions } from '../connector.ts';
import type { BackendConnections, BackendJob, NoPlace, ReservedPlace, Ticket } from './places.ts';

/** Most connections, in all and for one fairness key. */
export interface DedicatedConnectionsOptions extends BackendOptions {
  readonly connections: number;
  readonly connectionsPerKey: number;
}

/**
 * Connections for upgrades: each upgrade opens one, which is never reused, even when the backend declines. A place is taken
 * until the socket closes, also after the connection was switched. There is no queue.
 */
export class DedicatedConnections implements BackendConnections {
  readonly #options: DedicatedConnectionsOptions;
  readonly #connector: BackendConnector;
  readonly #takenByKey = new Map<string, number>();
  readonly #open = new Set<BackendConnection>();
  #taken = 0;

  constructor(options: DedicatedConnectionsOptions) {
    this.#options = options;
    this.#connector = new BackendConnector(options);
  }

  get connects(): number {
    return this.#connector.opened;
  }

  /** Places taken now. */
  get takenCount(): number {
    return this.#taken;
  }

  reserve(fairnessKey: string): ReservedPlace | NoPlace {
    const { connections, connectionsPerKey } = this.#options;
    const takenByKey = this.#takenByKey.get(fairnessKey) ?? 0;
    if (this.#taken >= connections) return 'full';
    if (takenByKey >= connectionsPerKey) return 'key_full';
    this.#taken += 1;
    this.#takenByKey.set(fairnessKey, takenByKey + 1);
    return {
      request: (job, nowMs) => this.#begin(job, fairnessKey, nowMs),
      cancel: () => this.#giveBack(fairnessKey),
    };
  }

  destroy(): void {
    for (const connection of this.#open) connection.destroy();
  }

  #begin(job: BackendJob, fairnessKey: string, nowMs: number): Ticket {
    const gone = (): void => {
      this.#open.delete(connection);
    };
    const owner: ConnectionOwner = {
      // It is never used again.
      onIdle: () => connection.destroy(),
      onClosed: () => {
        gone();
        this.#giveBack(fairnessKey);
      },
      onSwitched: (socket: Socket) => {
        gone();
        socket.once('close', () => this.#giveBack(fairnessKey));
      },
    };
    const connection = new BackendConnection(this.#options, this.#connector, owner);
    this.#open.add(connection);
    try {
      job.begin(connection, nowMs);
    } catch (error) {
      connection.destroy();
      job.onError(error);
    }
    return NO_TICKET;
  }

  #giveBack(fairnessKey: string): void {
    const left = (this.#takenByKey.get(fairnessKey) ?? 1) - 1;
    this.#taken -= 1;
    if (left === 0) this.#takenByKey.delete(fairnessKey);
    else this.#takenByKey.set(fairnessKey, left);
  }
}

/** The ticket of a job that has begun already and is never retried. */
const NO_TICKET: Ticket = Object.freeze({ withdraw() {}, retry() {} });
