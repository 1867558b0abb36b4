import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { responseDue, socketsBetweenRequests } from '../../http/node-internals.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ConnectionLimit } from './connection-limit.ts';

/** The part of the limit up to which kept connections are not closed: clients without complete requests can't displace them. */
const KEPT = 1 / 4;
/** Idle connections are tracked from this part of the limit on, so that the longest idle ones are known once it is reached. */
const LOOK_FROM = 3 / 4;
/** Shortest time between two looks, unless the last one made enough room and more is needed. Milliseconds. */
const LOOK_EVERY_MS = 1000;
/**
 * A connection that has not sent a byte is closed at the earliest this long after the look that found it: its first request may be under
 * way. A whole interval, because it is closed for any client, however few connections its own address has. Milliseconds.
 */
const UNUSED_MS = LOOK_EVERY_MS;
/** The part of the limit that one look frees in advance, because a look takes time for each open connection. */
const BATCH = 1 / 64;
/** Most connections that one look closes in advance, because closing takes time too. */
const MOST_AT_ONCE = 1024;

/** Which connections are watched. */
export interface IdleConnectionsOptions {
  readonly server: Server;
  /** The connections of the server in the order in which they were opened. */
  readonly open: ReadonlySet<Socket>;
  readonly limit: ConnectionLimit;
  readonly clock: Clock;
}

/** What a look found out about an idle connection. */
interface Found {
  /** Bytes that the connection had read: 0 for one that is unused. */
  readonly bytesRead: number;
  /** When it was first found idle. Milliseconds. */
  readonly at: number;
}

/**
 * Closes idle connections of a port that is nearly full: first unused ones, then kept ones, each with the longest idle first. An unused
 * connection has not sent a byte; a kept one has had a request, and the next one has not begun.
 */
export class IdleConnections {
  readonly #options: IdleConnectionsOptions;
  /** Longest idle first. */
  #idle = new Map<Socket, Found>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The last look found fewer idle connections than were to be closed. */
  #wasShort = false;
  #isScheduled = false;

  constructor(options: IdleConnectionsOptions) {
    this.#options = options;
  }

  /** Makes room for the next connections. To be called for each new connection, also for one that is rejected. */
  makeRoom(): void {
    const { limit } = this.#options;
    if (this.#isScheduled || limit.open < limit.most * LOOK_FROM) return;
    this.#isScheduled = true;
    // Requests that have arrived by now are read first: their connections are not idle.
    setImmediate(() => {
      this.#isScheduled = false;
      this.#look();
    });
  }

  delete(socket: Socket): void {
    this.#idle.delete(socket);
  }

  #look(): void {
    const { limit, clock } = this.#options;
    const { excess, most } = limit;
    const now = clock.monotonicMs();
    if (now - this.#lookedAt < LOOK_EVERY_MS && (excess <= 0 || this.#wasShort)) return;
    this.#lookedAt = now;
    this.#idle = this.#findIdle(now);
    // Connections are found and closed in one turn: those that became busy in between would count as kept.
    const wanted = excess > 0 ? excess + Math.min(MOST_AT_ONCE, Math.ceil(most * BATCH)) : 0;
    const closable = this.#closable(now);
    this.#wasShort = closable.length < wanted;
    for (const socket of closable.slice(0, wanted)) {
      socket.destroy();
      limit.noteEviction();
    }
  }

  /** Those that were idle at the last look come first, in their order. */
  #findIdle(now: number): Map<Socket, Found> {
    const betweenRequests = new Set(socketsBetweenRequests(this.#options.server));
    const idle = new Map([...this.#idle].filter(([socket, { bytesRead }]) => isIdle(socket, bytesRead)));
    for (const socket of this.#options.open) {
      const { bytesRead } = socket;
      if (idle.has(socket) || (bytesRead > 0 && !betweenRequests.has(socket))) continue;
      if (isIdle(socket, bytesRead)) idle.set(socket, { bytesRead, at: now });
    }
    return idle;
  }

  /** Those that may be closed, in the order in which to close them. */
  #closable(now: number): readonly Socket[] {
    const unused: Socket[] = [];
    const kept: Socket[] = [];
    for (const [socket, { bytesRead, at }] of this.#idle) {
      if (bytesRead > 0) kept.push(socket);
      else if (now - at >= UNUSED_MS) unused.push(socket);
    }
    return unused.concat(
      kept.slice(0, Math.max(0, kept.length - Math.ceil(this.#options.limit.most * KEPT))),
    );
  }
}

/** Whether a connection has been idle since it had read `bytesRead`. Not one that is closing: its client may still read a response. */
function isIdle(socket: Socket, bytesRead: number): boolean {
  return (
    socket.bytesRead === bytesRead &&
    responseDue(socket) === undefined &&
    !socket.writableEnded &&
    !socket.destroyed
  );
}
