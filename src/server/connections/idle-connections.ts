import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { responseDue, socketsBetweenRequests } from '../../http/node-internals.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ConnectionLimit } from './connection-limit.ts';

/** The part of the limit that kept connections may have however full the port is: clients without whole requests can't push them out. */
const KEPT = 1 / 4;
/** Idle connections are looked for from this part of the limit on, so that it is known which are idle for longest when it is reached. */
const LOOK_FROM = 3 / 4;
/** Between two looks, unless the first one made all the room that it should. Milliseconds. */
const LOOK_EVERY_MS = 1000;
/**
 * A connection without a byte is closed this long after the look that found it: its first request may be under way. As long as the time
 * between two looks, because it is closed for any client, whatever its own address has. Milliseconds.
 */
const UNUSED_MS = LOOK_EVERY_MS;
/** A look takes time for each open connection, so it makes room for this part of the limit at once, */
const BATCH = 1 / 64;
/** but for at most so many: to close them takes time too. */
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
  /** When it was found idle first. Milliseconds. */
  readonly at: number;
}

/**
 * Closes idle connections of a port that is nearly full, the longest idle first: those that are unused, then those that are kept.
 * Unused is a connection that has not sent a byte; kept is one that has had a request, and on which the next one has not begun.
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

  /** Makes room for the next connections. To be called for each that is new, also for one that is rejected. */
  makeRoom(): void {
    const { limit } = this.#options;
    if (this.#isScheduled || limit.open < limit.most * LOOK_FROM) return;
    this.#isScheduled = true;
    // Requests that have arrived by now are read before it is judged who is idle.
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
    // Closed in the same turn as they were found, so that those that have become busy since don't count as kept.
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

/** Of a connection that was idle when it had read so much. One that is closing already has a response that its client may still read. */
function isIdle(socket: Socket, bytesRead: number): boolean {
  return (
    socket.bytesRead === bytesRead &&
    responseDue(socket) === undefined &&
    !socket.writableEnded &&
    !socket.destroyed
  );
}
