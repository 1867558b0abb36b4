import type { Socket } from 'node:net';
import { plainAddress } from '../../http/client-address.ts';
import { sitesOf } from '../../platform/address-sites.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ConnectionLimit } from './connection-limit.ts';

/** Shortest time between two counts, because a count takes time for every open connection. Milliseconds. */
const COUNT_EVERY_MS = 1000;
/** The same once all connections that the last count found closable have been closed. Milliseconds. */
const COUNT_SOONER_MS = 100;
/** A count takes at most this part of the time: the next one waits accordingly. */
const SHARE_OF_TIME = 1 / 20;
/**
 * Youngest age at which a connection that has not sent a byte is closed: its first request may be under way. Short, because a client of
 * another address is rejected while all are younger; and only addresses beyond their share lose connections. Milliseconds.
 */
const UNUSED_MS = 250;

/** Where a connection came from, and when. */
interface Origin {
  readonly site: string;
  readonly openedAt: number;
}

/**
 * Makes room for clients of other addresses when a port is full. The share of an address is the connection limit divided by the number
 * of connected addresses plus one. For a client whose address is below its share, a connection that has not sent a byte is closed if its
 * address is beyond its share. Clients of one address, such as that of a load balancer, never displace each other.
 */
export class FairEviction {
  readonly #open: ReadonlySet<Socket>;
  readonly #limit: ConnectionLimit;
  readonly #clock: Clock;
  readonly #origins = new WeakMap<Socket, Origin>();
  #nextCountAt = Number.NEGATIVE_INFINITY;
  #nextCountSoonerAt = Number.NEGATIVE_INFINITY;
  #share = 0;
  /** Connections by address, as counted last. */
  #counts = new Map<string, number>();
  /** The connections that may be closed, in this order: the oldest of the address with the most connections first. */
  #closable = new Set<Socket>();
  /** The last count found connections that may be closed. */
  #hasFound = false;

  /** `open` has the connections in the order in which they were opened. */
  constructor(open: ReadonlySet<Socket>, limit: ConnectionLimit, clock: Clock) {
    this.#open = open;
    this.#limit = limit;
    this.#clock = clock;
  }

  /** To be called for each connection that is new. */
  add(socket: Socket): void {
    // Read now: reading the addresses of all connections at once, in a count, would take the system and the process too long.
    const { site } = sitesOf(plainAddress(socket.remoteAddress ?? ''));
    this.#origins.set(socket, { site, openedAt: this.#clock.monotonicMs() });
  }

  delete(socket: Socket): void {
    this.#closable.delete(socket);
  }

  /** Closes a connection of another address for one that was added but is not counted as open. Returns whether it closed one. */
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
