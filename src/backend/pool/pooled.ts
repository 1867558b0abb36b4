import { BackendConnection, type ConnectionOwner } from '../connection.ts';
import type { BackendConnector, BackendOptions } from '../connector.ts';
import { KeyQueue } from './fair-queue.ts';
import type { BackendJob, BackendPlace, Ticket } from './places.ts';

/** What a pool does for its queues, tickets and connections. */
export interface PlaceKeeper {
  /** Counts one more place of the key as taken. */
  take(keyQueue: PooledKeyQueue): void;
  giveBack(keyQueue: PooledKeyQueue): void;
  /** Assigns a connection to a ticket, or appends the ticket to the queue of its key. */
  enter(ticket: PooledTicket, nowMs: number): void;
  /** Puts a ticket that has already waited at the head of the queue of its key. */
  enterFirst(ticket: PooledTicket): void;
  /** Removes a ticket whose job has not begun. */
  leave(ticket: PooledTicket): void;
  onIdle(pooled: PooledConnection): void;
  onGone(pooled: PooledConnection): void;
}

/** The places of one fairness key. All of its requests share the object: each holds one place of it. */
export class PooledKeyQueue extends KeyQueue<PooledTicket> implements BackendPlace {
  readonly #pool: PlaceKeeper;

  constructor(pool: PlaceKeeper, key: string) {
    super(key);
    this.#pool = pool;
  }

  request(job: BackendJob, nowMs: number): Ticket {
    const ticket = new PooledTicket(this.#pool, this, job);
    this.#pool.enter(ticket, nowMs);
    return ticket;
  }

  cancel(): void {
    this.#pool.giveBack(this);
  }
}

/** An idle connection that is reserved for a job. */
export interface Reservation {
  readonly ticket: PooledTicket;
  readonly pooled: PooledConnection;
}

/** A job on its way to a connection. */
export class PooledTicket implements Ticket {
  readonly job: BackendJob;
  readonly keyQueue: PooledKeyQueue;
  /** The idle connection that the job will get, unless that connection closes first. */
  reservation: Reservation | undefined = undefined;
  readonly #pool: PlaceKeeper;

  constructor(pool: PlaceKeeper, keyQueue: PooledKeyQueue, job: BackendJob) {
    this.#pool = pool;
    this.keyQueue = keyQueue;
    this.job = job;
  }

  withdraw(): void {
    this.#pool.leave(this);
  }

  retry(): void {
    this.#pool.take(this.keyQueue);
    this.#pool.enterFirst(this);
  }
}

/** A connection of the pool, and what it is used for. */
export class PooledConnection implements ConnectionOwner {
  readonly connection: BackendConnection;
  /** The queue of the key whose request has the connection; undefined while it is idle. */
  keyQueue: PooledKeyQueue | undefined = undefined;
  ticket: PooledTicket | undefined = undefined;
  /** By the monotonic clock. Milliseconds. */
  idleSinceMs = 0;
  readonly #pool: PlaceKeeper;

  constructor(pool: PlaceKeeper, options: BackendOptions, connector: BackendConnector) {
    this.#pool = pool;
    this.connection = new BackendConnection(options, connector, this);
  }

  onIdle(): void {
    this.#pool.onIdle(this);
  }

  onClosed(): void {
    this.#pool.onGone(this);
  }

  /** No request of a pool asks for an upgrade. */
  onSwitched(): void {
    this.#pool.onGone(this);
  }
}
