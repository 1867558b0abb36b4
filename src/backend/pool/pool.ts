// The room `backend`: an HTTP/1.1 client for the backend, which knows nothing of keys, limits or proxying.
// In: requests (`BackendJob`), each with a text by which connections are shared fairly.
// Out: a connection for each, its response parsed strictly, and no connection kept that may hold another's bytes. It has no circuit
// breaker: that of the gateway is for Redis (`limiter/guards/`).

import type { Clock } from '../../platform/clock.ts';
import { BackendConnector, type BackendOptions } from '../connector.ts';
import {
  AfterPollQueue,
  type BackendConnections,
  type BackendJob,
  FairQueue,
  KeyQueue,
  type NoPlace,
  type PlaceKeeper,
  PooledConnection,
  type PooledTicket,
  type Reservation,
  type ReservedPlace,
} from './places.ts';

/** How many connections there are, and how many requests may wait for one. */
export interface BackendPoolOptions extends BackendOptions {
  readonly clock: Clock;
  readonly connections: number;
  /** Most connections for one fairness key. Values above `connections` have no effect. */
  readonly connectionsPerKey: number;
  /**
   * Most waiting requests. The default is four for each connection and at least 64: so few are served soon. One fairness key has the
   * same share of them as of the connections.
   */
  readonly waiting?: number | undefined;
}

const WAITING_PER_CONNECTION = 4;
const LEAST_WAITING = 64;

/**
 * How long a connection is used at most: a backend that has more replicas, or whose name means other addresses now, is seen only by new ones.
 * Milliseconds.
 */
const LONGEST_USE_MS = 300_000;
/** Each is used for so much less than the one before, so that those of one moment are not replaced all at once. */
const SPREAD_STEP_MS = 3000;
const SPREAD_STEPS = 20;

/** How often idle connections and queues of keys are looked through. Milliseconds. */
const IDLE_CHECK_MS = 500;

/**
 * At most `connections` requests are with the backend, each on a separate connection, and at most `waiting` wait for one; the
 * fairness keys that wait are served in turn. The connection used last is used first, so that the others may close when fewer are
 * needed. An idle connection is written to only after the event loop has read its socket. Once a request has a connection, events of the
 * connection give the place back, never the request's own code.
 */
export class BackendPool implements BackendConnections, PlaceKeeper {
  readonly #options: BackendPoolOptions;
  readonly #connector: BackendConnector;
  readonly #placesPerKey: number;
  readonly #queue: FairQueue;
  /**
   * The queues of the keys that have a place, or had one a moment ago. Adding and deleting a queue with each request would rehash the map
   * again and again: each old table refers to its successor, so that all tables and queues would outlive the young generation.
   */
  readonly #keyQueues = new Map<string, KeyQueue>();
  readonly #all = new Set<PooledConnection>();
  /** In the order of their last use, the latest at the end. */
  readonly #idle: PooledConnection[] = [];
  readonly #afterPoll = new AfterPollQueue<Reservation>((reservation) => this.#settle(reservation));
  /** How many there were. */
  #made = 0;
  #taken = 0;
  readonly #mostWaiting: number;
  #waiting = 0;
  #idleCheck: NodeJS.Timeout | undefined;
  #isDestroyed = false;

  constructor(options: BackendPoolOptions) {
    const { connections, connectionsPerKey } = options;
    const { waiting = Math.max(LEAST_WAITING, WAITING_PER_CONNECTION * connections) } = options;
    const busyPerKey = Math.min(connections, connectionsPerKey);
    this.#options = options;
    this.#mostWaiting = waiting;
    this.#connector = new BackendConnector(options);
    this.#queue = new FairQueue(busyPerKey);
    this.#placesPerKey = busyPerKey + Math.ceil((waiting * busyPerKey) / connections);
  }

  /** Requests that wait for a connection now. */
  get waitingCount(): number {
    return this.#waiting;
  }

  /** Requests that have a connection now. */
  get busyCount(): number {
    return this.#all.size - this.#idle.length;
  }

  /** Places taken now: by requests with a connection, by those that wait, and by reservations that are not used yet. */
  get takenCount(): number {
    return this.#taken;
  }

  get connects(): number {
    return this.#connector.opened;
  }

  reserve(fairnessKey: string): ReservedPlace | NoPlace {
    const { connections } = this.#options;
    let keyQueue = this.#keyQueues.get(fairnessKey);
    if (this.#taken >= connections + this.#mostWaiting) return 'full';
    if (keyQueue === undefined) {
      keyQueue = new KeyQueue(this, fairnessKey);
      this.#keyQueues.set(fairnessKey, keyQueue);
    } else if (keyQueue.taken >= this.#placesPerKey) {
      return 'key_full';
    }
    this.take(keyQueue);
    return keyQueue;
  }

  destroy(): void {
    this.#isDestroyed = true;
    clearTimeout(this.#idleCheck);
    for (const connection of this.#all) connection.connection.destroy();
  }

  /** This and the methods below are for the pool's own queues, tickets and connections. */
  take(keyQueue: KeyQueue): void {
    keyQueue.taken += 1;
    this.#taken += 1;
  }

  giveBack(keyQueue: KeyQueue): void {
    keyQueue.taken -= 1;
    this.#taken -= 1;
    if (keyQueue.taken === 0) this.#checkLater();
  }

  enter(ticket: PooledTicket, nowMs: number): void {
    const { keyQueue } = ticket;
    const pooled = this.#queue.mayPass(keyQueue) ? this.#findConnection(nowMs) : undefined;
    if (pooled !== undefined) {
      keyQueue.busy += 1;
      this.#assign(ticket, pooled, nowMs);
      return;
    }
    keyQueue.push(ticket);
    this.#waiting += 1;
    this.#queue.update(keyQueue);
  }

  enterFirst(ticket: PooledTicket): void {
    this.#keyQueues.set(ticket.keyQueue.key, ticket.keyQueue);
    ticket.keyQueue.unshift(ticket);
    this.#waiting += 1;
    this.#queue.update(ticket.keyQueue);
    this.#serve(this.#options.clock.monotonicMs());
  }

  leave(ticket: PooledTicket): void {
    const { keyQueue, reservation } = ticket;
    if (reservation !== undefined) {
      const { pooled } = reservation;
      ticket.reservation = undefined;
      pooled.connection.release();
      this.#addIdle(pooled, this.#options.clock.monotonicMs());
    } else if (keyQueue.delete(ticket)) {
      this.#waiting -= 1;
      this.#queue.update(keyQueue);
      this.giveBack(keyQueue);
    }
  }

  onIdle(pooled: PooledConnection): void {
    const nowMs = this.#options.clock.monotonicMs();
    pooled.idleSinceMs = nowMs;
    this.#addIdle(pooled, nowMs);
  }

  onGone(pooled: PooledConnection): void {
    this.#all.delete(pooled);
    const { ticket } = pooled;
    const isIdle = pooled.keyQueue === undefined;
    if (isIdle) this.#idle.splice(this.#idle.indexOf(pooled), 1);
    else this.#free(pooled);
    if (this.#isDestroyed) return;
    // Its request has not begun: it takes the next connection.
    if (ticket?.reservation?.pooled === pooled) {
      ticket.reservation = undefined;
      this.take(ticket.keyQueue);
      this.enterFirst(ticket);
    } else if (!isIdle) {
      this.#serve(this.#options.clock.monotonicMs());
    }
  }

  #addIdle(pooled: PooledConnection, nowMs: number): void {
    this.#idle.push(pooled);
    this.#checkLater();
    this.#free(pooled);
    this.#serve(nowMs);
  }

  /** The connection carries no request any more. */
  #free(pooled: PooledConnection): void {
    const { keyQueue } = pooled;
    pooled.ticket = undefined;
    pooled.keyQueue = undefined;
    if (keyQueue === undefined) return;
    keyQueue.busy -= 1;
    this.#queue.update(keyQueue);
    this.giveBack(keyQueue);
  }

  /** Assigns connections to waiting requests as long as there are both. */
  #serve(nowMs: number): void {
    while (this.#queue.hasNext && !this.#isDestroyed) {
      const pooled = this.#findConnection(nowMs);
      if (pooled === undefined) return;
      const ticket = this.#queue.next();
      if (ticket === undefined) return;
      this.#waiting -= 1;
      this.#assign(ticket, pooled, nowMs);
    }
  }

  /** Takes an idle connection out of `#idle`, or makes a new one if the limit allows it; else undefined. */
  #findConnection(nowMs: number): PooledConnection | undefined {
    // The process may have been paused: the backend may have closed the connection meanwhile.
    for (let last = this.#idle.at(-1); last !== undefined; last = this.#idle.at(-1)) {
      if (!isTooOld(last, nowMs)) return this.#idle.pop();
      last.connection.destroy();
    }
    if (this.#all.size >= this.#options.connections || this.#isDestroyed) return undefined;
    const lastUseMs = nowMs + LONGEST_USE_MS - (this.#made % SPREAD_STEPS) * SPREAD_STEP_MS;
    const made = new PooledConnection(this, this.#options, this.#connector, lastUseMs);
    this.#made += 1;
    this.#all.add(made);
    return made;
  }

  #assign(ticket: PooledTicket, pooled: PooledConnection, nowMs: number): void {
    pooled.keyQueue = ticket.keyQueue;
    pooled.ticket = ticket;
    if (pooled.connection.state === 'new') {
      this.#begin(ticket, pooled, nowMs);
      return;
    }
    pooled.connection.reserve();
    ticket.reservation = { ticket, pooled };
    this.#afterPoll.add(ticket.reservation);
  }

  /** The event loop has read the socket of the reserved connection: the job begins if the connection is still usable. */
  #settle(reservation: Reservation): void {
    const { ticket, pooled } = reservation;
    // Withdrawn, or it has got another connection because this one closed.
    if (ticket.reservation !== reservation) return;
    if (!pooled.connection.isUsable) {
      pooled.connection.destroy();
      return;
    }
    ticket.reservation = undefined;
    this.#begin(ticket, pooled, this.#options.clock.monotonicMs());
  }

  #begin({ job }: PooledTicket, { connection }: PooledConnection, nowMs: number): void {
    try {
      job.begin(connection, nowMs);
    } catch (error) {
      connection.destroy();
      this.#report(job, error);
    }
    // The job has sent nothing on it.
    if (connection.state === 'new' || connection.state === 'reserved') connection.destroy();
  }

  #report(job: BackendJob, error: unknown): void {
    try {
      job.onError(error);
    } catch (fault) {
      this.#options.onFault?.(fault);
    }
  }

  #checkLater(): void {
    this.#idleCheck ??= setTimeout(() => this.#checkIdle(), IDLE_CHECK_MS).unref();
  }

  #checkIdle(): void {
    this.#idleCheck = undefined;
    const nowMs = this.#options.clock.monotonicMs();
    for (const old of this.#idle.filter((idle) => isTooOld(idle, nowMs))) old.connection.destroy();
    for (const [key, { taken }] of this.#keyQueues) if (taken === 0) this.#keyQueues.delete(key);
    if (this.#idle.length > 0) this.#checkLater();
  }
}

/** An idle connection that the backend may be about to close, or that has carried requests for long enough. */
function isTooOld({ idleSinceMs, lastUseMs, connection }: PooledConnection, nowMs: number): boolean {
  return nowMs - idleSinceMs >= connection.maxIdleMs || nowMs >= lastUseMs;
}
