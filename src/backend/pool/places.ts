import { BackendConnection, type ConnectionOwner } from '../connection.ts';
import type { BackendConnector, BackendOptions } from '../connector.ts';

/** A request that needs a connection to the backend. */
export interface BackendJob {
  /** Called once for each attempt, each time with another connection. `nowMs` is the time by the monotonic clock. */
  begin(connection: BackendConnection, nowMs: number): void;
  /** Called with what `begin` threw. The connection is closed already. */
  onError(error: unknown): void;
}

/** A job that was given a place, until it is over. */
export interface Ticket {
  /** Cancels a job that has not begun. Does nothing for one that has. */
  withdraw(): void;
  /** To be called after the connection closed: the job begins again, on the next connection that is free. */
  retry(): void;
}

/** Room for one request, with the backend or in the queue for it. Exactly one of the two methods must be called, once. */
export interface ReservedPlace {
  /** Uses the place: the job begins now or later. `nowMs` is the time by the monotonic clock. */
  request(job: BackendJob, nowMs: number): Ticket;
  /** Gives the place back unused. */
  cancel(): void;
}

/** Why there is no place: the queue is full, or the share of this fairness key is used up. */
export type NoPlace = 'full' | 'key_full';

/** Where connections to the backend come from. */
export interface BackendConnections {
  /** Takes a place. Requests with the same fairness key (any string) share one part of the places. */
  reserve(fairnessKey: string): ReservedPlace | NoPlace;
  /** Connections made since the start. */
  readonly connects: number;
  /** Closes all connections: requests in progress fail, waiting ones never begin. */
  destroy(): void;
}

/**
 * Passes on each item after one complete poll of all sockets by the event loop: bytes that were in a socket when the item was added
 * have been read by then. This takes two immediates, because one that is set during a poll runs before the next poll. Both are referenced,
 * because the loop would sleep before an unreferenced one. Items that are added together share them.
 */
export class AfterPollQueue<Item> {
  readonly #onPolled: (item: Item) => void;
  /** Items that were added since the last poll began. */
  #arriving: Item[] = [];
  /** Items that were added before the last poll began. */
  #polling: Item[] = [];
  #isScheduled = false;

  constructor(onPolled: (item: Item) => void) {
    this.#onPolled = onPolled;
  }

  add(item: Item): void {
    this.#arriving.push(item);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#step);
  }

  readonly #step = (): void => {
    const polled = this.#polling;
    this.#polling = this.#arriving;
    this.#arriving = [];
    this.#isScheduled = this.#polling.length > 0;
    if (this.#isScheduled) setImmediate(this.#step);
    for (const item of polled) this.#onPolled(item);
  };
}

/** The requests of one fairness key: the waiting ones in order. They share the object as their place: each holds one place of it. */
export class KeyQueue implements ReservedPlace {
  /** Connections that requests of this key have. */
  busy = 0;
  /** Places that requests of this key have: reserved, waiting and busy ones. */
  taken = 0;
  readonly key: string;
  readonly #pool: PlaceKeeper;
  #waiting: Set<PooledTicket> | undefined;

  constructor(pool: PlaceKeeper, key: string) {
    this.#pool = pool;
    this.key = key;
  }

  request(job: BackendJob, nowMs: number): Ticket {
    const ticket = new PooledTicket(this.#pool, this, job);
    this.#pool.enter(ticket, nowMs);
    return ticket;
  }

  cancel(): void {
    this.#pool.giveBack(this);
  }

  get waiting(): number {
    return this.#waiting?.size ?? 0;
  }

  push(ticket: PooledTicket): void {
    this.#waiting ??= new Set();
    this.#waiting.add(ticket);
  }

  /** Puts a ticket in front of all others. */
  unshift(ticket: PooledTicket): void {
    this.#waiting = new Set([ticket, ...(this.#waiting ?? [])]);
  }

  shift(): PooledTicket | undefined {
    const [first] = this.#waiting ?? [];
    if (first !== undefined) this.#waiting?.delete(first);
    return first;
  }

  delete(ticket: PooledTicket): boolean {
    return this.#waiting?.delete(ticket) === true;
  }
}

/**
 * The queues of keys with a waiting ticket that may have one more connection. They are served in turn: each key gets one connection before
 * any key gets its next.
 */
export class FairQueue {
  readonly #busyPerKey: number;
  readonly #ready = new Set<KeyQueue>();

  constructor(busyPerKey: number) {
    this.#busyPerKey = busyPerKey;
  }

  /** Whether a waiting ticket may be served. */
  get hasNext(): boolean {
    return this.#ready.size > 0;
  }

  /** Whether a new request of this key may have a connection without waiting. */
  mayPass(keyQueue: KeyQueue): boolean {
    return this.#ready.size === 0 && keyQueue.waiting === 0 && keyQueue.busy < this.#busyPerKey;
  }

  /** To be called after the queue of a key or its `busy` has changed. */
  update(keyQueue: KeyQueue): void {
    if (keyQueue.waiting > 0 && keyQueue.busy < this.#busyPerKey) this.#ready.add(keyQueue);
    else this.#ready.delete(keyQueue);
  }

  /** Takes the oldest ticket of the key whose turn it is, and counts it as busy. Its next turn comes after all others. */
  next(): PooledTicket | undefined {
    const [keyQueue] = this.#ready;
    const ticket = keyQueue?.shift();
    if (keyQueue === undefined || ticket === undefined) return undefined;
    this.#ready.delete(keyQueue);
    keyQueue.busy += 1;
    this.update(keyQueue);
    return ticket;
  }
}

/** What a pool does for its queues, tickets and connections. */
export interface PlaceKeeper {
  /** Counts one more place of the key as taken. */
  take(keyQueue: KeyQueue): void;
  giveBack(keyQueue: KeyQueue): void;
  /** Assigns a connection to a ticket, or appends the ticket to the queue of its key. */
  enter(ticket: PooledTicket, nowMs: number): void;
  /** Puts a ticket that has already waited at the head of the queue of its key. */
  enterFirst(ticket: PooledTicket): void;
  /** Removes a ticket whose job has not begun. */
  leave(ticket: PooledTicket): void;
  onIdle(pooled: PooledConnection): void;
  onGone(pooled: PooledConnection): void;
}

/** An idle connection that is reserved for a job. */
export interface Reservation {
  readonly ticket: PooledTicket;
  readonly pooled: PooledConnection;
}

/** A job on its way to a connection. */
export class PooledTicket implements Ticket {
  readonly job: BackendJob;
  readonly keyQueue: KeyQueue;
  /** The idle connection that the job will get, unless that connection closes first. */
  reservation: Reservation | undefined = undefined;
  readonly #pool: PlaceKeeper;

  constructor(pool: PlaceKeeper, keyQueue: KeyQueue, job: BackendJob) {
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
  keyQueue: KeyQueue | undefined = undefined;
  ticket: PooledTicket | undefined = undefined;
  /** By the monotonic clock. Milliseconds. */
  idleSinceMs = 0;
  /** From then on it takes no further request. By the monotonic clock, milliseconds. */
  readonly lastUseMs: number;
  readonly #pool: PlaceKeeper;

  constructor(pool: PlaceKeeper, options: BackendOptions, connector: BackendConnector, lastUseMs: number) {
    this.#pool = pool;
    this.lastUseMs = lastUseMs;
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
