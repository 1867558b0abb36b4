import type { Socket } from 'node:net';
import { sitesOf } from '../http/address-sites.ts';
import { plainAddress } from '../http/client-address.ts';
import type { Clock } from '../platform/clock.ts';
import type { ConnectionLimit } from './connection-limit.ts';

/** Between two counts: each takes time for every open connection. Milliseconds. */
const COUNT_EVERY_MS = 1000;
/** The same where all that were found have been closed. */
const COUNT_SOONER_MS = 100;

/**
 * Lets clients of further addresses into a port that is full. The share of an address is the limit divided by the addresses that have
 * connections and one more. What an address has beyond its share and has not sent a byte is closed for others, which have less than theirs.
 * Clients of one address, such as that of a load balancer, close nothing of each other.
 */
export class AddressShares {
  readonly #open: ReadonlySet<Socket>;
  readonly #limit: ConnectionLimit;
  readonly #clock: Clock;
  #countedAt = Number.NEGATIVE_INFINITY;
  #share = 0;
  /** Connections by address, as counted last. */
  #counts = new Map<string, number>();
  /** Those that may be closed; the next one comes last: the oldest of the address that has most. */
  #closable: Socket[] = [];
  /** The last count found some. */
  #hasFound = false;

  /** `open` has the connections in the order in which they were opened. */
  constructor(open: ReadonlySet<Socket>, limit: ConnectionLimit, clock: Clock) {
    this.#open = open;
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Whether another connection was closed for a new one. */
  makeRoomFor(socket: Socket): boolean {
    this.#countAgain();
    const address = addressOf(socket);
    const count = this.#counts.get(address) ?? 0;
    if (count >= this.#share) return false;
    const closed = this.#nextUnused();
    closed?.destroy();
    if (closed !== undefined) this.#counts.set(address, count + 1);
    return closed !== undefined;
  }

  #nextUnused(): Socket | undefined {
    let next = this.#closable.pop();
    while (next !== undefined && !isUnused(next)) next = this.#closable.pop();
    return next;
  }

  #countAgain(): void {
    const now = this.#clock.monotonicMs();
    const isUsedUp = this.#hasFound && this.#closable.length === 0;
    if (now - this.#countedAt < (isUsedUp ? COUNT_SOONER_MS : COUNT_EVERY_MS)) return;
    this.#countedAt = now;
    const byAddress = Map.groupBy(this.#open, addressOf);
    this.#counts = new Map([...byAddress].map(([address, sockets]) => [address, sockets.length]));
    const share = Math.max(1, Math.floor(this.#limit.most / (byAddress.size + 1)));
    this.#share = share;
    this.#closable = [...byAddress.values()]
      .filter(({ length }) => length > share)
      .toSorted((one, other) => one.length - other.length)
      .flatMap((sockets) =>
        sockets
          .filter(isUnused)
          .slice(0, sockets.length - share)
          .reverse(),
      );
    this.#hasFound = this.#closable.length > 0;
  }
}

function isUnused(socket: Socket): boolean {
  return socket.bytesRead === 0 && !socket.destroyed;
}

function addressOf({ remoteAddress = '' }: Socket): string {
  return sitesOf(plainAddress(remoteAddress)).site;
}
