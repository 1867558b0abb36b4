import type { Socket } from 'node:net';
import { sitesOf } from '../../http/address-sites.ts';
import { plainAddress } from '../../http/client-address.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ConnectionLimit } from './connection-limit.ts';

/** Between two counts: each takes time for every open connection. Milliseconds. */
const COUNT_EVERY_MS = 1000;
/** The same where all that were found have been closed. */
const COUNT_SOONER_MS = 100;
/** What a count took is at most this part of the time until the next one. */
const SHARE_OF_TIME = 1 / 20;
/**
 * A connection without a byte is closed at this age at the earliest: its first request may be under way. Short, because each one that is too
 * young is a client of another address that is turned away; only addresses beyond their share lose any. Milliseconds.
 */
const UNUSED_MS = 250;

/** Where a connection came from, and when. */
interface Origin {
  readonly site: string;
  readonly openedAt: number;
}

/**
 * Lets clients of further addresses into a port that is full. The share of an address is the limit divided by the addresses that have
 * connections and one more. What an address has beyond its share and has not sent a byte is closed for others, which have less than theirs.
 * Clients of one address, such as that of a load balancer, close nothing of each other.
 */
export class AddressShares {
  readonly #open: ReadonlySet<Socket>;
  readonly #limit: ConnectionLimit;
  readonly #clock: Clock;
  readonly #origins = new WeakMap<Socket, Origin>();
  #nextCountAt = Number.NEGATIVE_INFINITY;
  #nextCountSoonerAt = Number.NEGATIVE_INFINITY;
  #share = 0;
  /** Connections by address, as counted last. */
  #counts = new Map<string, number>();
  /** Those that may be closed, in the order in which to close them: the oldest of the address that has most come first. */
  #closable = new Set<Socket>();
  /** The last count found some. */
  #hasFound = false;

  /** `open` has the connections in the order in which they were opened. */
  constructor(open: ReadonlySet<Socket>, limit: ConnectionLimit, clock: Clock) {
    this.#open = open;
    this.#limit = limit;
    this.#clock = clock;
  }

  /** To be called for each connection that is new. */
  add(socket: Socket): void {
    // Read now: it takes the system, and where there are many connections to count also the process, too long for all of them at once.
    const { site } = sitesOf(plainAddress(socket.remoteAddress ?? ''));
    this.#origins.set(socket, { site, openedAt: this.#clock.monotonicMs() });
  }

  delete(socket: Socket): void {
    this.#closable.delete(socket);
  }

  /** Whether another connection was closed for one that was added, and that is not open yet. */
  makeRoomFor(socket: Socket): boolean {
    // A client that has left already needs no room.
    if (socket.remoteAddress === undefined) return false;
    this.#countAgain();
    const site = this.#siteOf(socket);
    const count = this.#counts.get(site) ?? 0;
    if (count >= this.#share) return false;
    const closed = this.#nextUnused();
    closed?.destroy();
    if (closed !== undefined) this.#counts.set(site, count + 1);
    return closed !== undefined;
  }

  #nextUnused(): Socket | undefined {
    for (const socket of this.#closable) {
      this.#closable.delete(socket);
      if (isUnused(socket)) return socket;
    }
    return undefined;
  }

  #countAgain(): void {
    const startedAt = this.#clock.monotonicMs();
    const isUsedUp = this.#hasFound && this.#closable.size === 0;
    if (startedAt < (isUsedUp ? this.#nextCountSoonerAt : this.#nextCountAt)) return;
    this.#count(startedAt - UNUSED_MS);
    const endedAt = this.#clock.monotonicMs();
    const restMs = (endedAt - startedAt) / SHARE_OF_TIME;
    this.#nextCountAt = endedAt + Math.max(COUNT_EVERY_MS, restMs);
    this.#nextCountSoonerAt = endedAt + Math.max(COUNT_SOONER_MS, restMs);
  }

  #count(openedUntil: number): void {
    const bySite = Map.groupBy(this.#open, (socket) => this.#siteOf(socket));
    this.#counts = new Map([...bySite].map(([site, sockets]) => [site, sockets.length]));
    const share = Math.max(1, Math.floor(this.#limit.most / (bySite.size + 1)));
    this.#share = share;
    const mayBeClosed = (socket: Socket) =>
      isUnused(socket) && (this.#origins.get(socket)?.openedAt ?? 0) <= openedUntil;
    this.#closable = new Set(
      [...bySite.values()]
        .filter(({ length }) => length > share)
        .toSorted((one, other) => other.length - one.length)
        .flatMap((sockets) => sockets.filter(mayBeClosed).slice(0, sockets.length - share)),
    );
    this.#hasFound = this.#closable.size > 0;
  }

  #siteOf(socket: Socket): string {
    return this.#origins.get(socket)?.site ?? '';
  }
}

function isUnused(socket: Socket): boolean {
  return socket.bytesRead === 0 && !socket.destroyed;
}
