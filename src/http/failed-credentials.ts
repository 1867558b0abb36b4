import type { IncomingMessage } from 'node:http';
import { type BlockList, isIPv6 } from 'node:net';
import { LRUCache } from 'lru-cache';
import { TollgateError } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import { clientAddress } from './client-address.ts';

export interface FailedCredentialsOptions {
  readonly clock: Clock;
  /** Whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: BlockList;
  /** Failures that an address may have at once; 1000 unless told. */
  readonly burst?: number;
  /** Failures that it may have for good; 50 unless told, and at least 1, as `Retry-After` says one second. */
  readonly perSecond?: number;
  /** Addresses remembered; the one that failed longest ago is forgotten first. 10 000 unless told. */
  readonly maxAddresses?: number;
}

/** What is left of an address's budget. Changed in place: a flood must not make garbage. */
interface Bucket {
  left: number;
  atMs: number;
}

/**
 * How often a client address is told that its credentials are wrong: beyond its budget the answer is 429. Only failures are asked about,
 * after the credentials were judged: a right key or root token is let in whatever others try from its address, and nobody can lock
 * anybody out. The budget is each process's own.
 */
export class FailedCredentials {
  readonly #clock: Clock;
  readonly #trustedProxies: BlockList;
  readonly #burst: number;
  readonly #perSecond: number;
  readonly #buckets: LRUCache<string, Bucket>;

  constructor(options: FailedCredentialsOptions) {
    const { burst = 1000, perSecond = 50, maxAddresses = 10_000 } = options;
    this.#clock = options.clock;
    this.#trustedProxies = options.trustedProxies;
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#buckets = new LRUCache({ max: maxAddresses });
  }

  /** What to answer to a request whose credentials failed with `failure`: that, or `too_many_requests`. */
  answerTo(req: IncomingMessage, failure: TollgateError): TollgateError {
    const bucket = this.#bucketOf(siteOf(clientAddress(req, this.#trustedProxies)));
    if (bucket.left >= 1) {
      bucket.left -= 1;
      return failure;
    }
    return new TollgateError(
      'too_many_requests',
      'Too many requests with wrong credentials came from this address. Try again shortly.',
    );
  }

  #bucketOf(site: string): Bucket {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#buckets.get(site);
    if (known === undefined) {
      const full = { left: this.#burst, atMs: nowMs };
      this.#buckets.set(site, full);
      return full;
    }
    known.left = Math.min(this.#burst, known.left + ((nowMs - known.atMs) / 1000) * this.#perSecond);
    known.atMs = nowMs;
    return known;
  }
}

/** Who has one IPv6 address commonly has the 2^64 of its network. */
function siteOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [before = '', after] = address.split('%', 1)[0]?.toLowerCase().split('::') ?? [];
  const groups = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : Math.max(0, 8 - groups.length - tail.length);
  return [...groups, ...Array<string>(zeros).fill('0'), ...tail]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':');
}
