import type { IncomingMessage } from 'node:http';
import type { BlockList } from 'node:net';
import { TollgateError } from '../../errors.ts';
import { type AddressSites, sitesOf } from '../../platform/address-sites.ts';
import { BoundedCache } from '../../platform/bounded-cache.ts';
import type { Clock } from '../../platform/clock.ts';
import { clientAddress } from '../client-address.ts';

export interface FailedCredentialsOptions {
  readonly clock: Clock;
  /** Proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: BlockList;
  /** Tells clients apart; by default by their addresses. */
  readonly sitesOf?: (req: IncomingMessage) => AddressSites;
}

/** What is left of a client's budget. Changed in place: a flood must not make garbage. */
interface Bucket {
  left: number;
  atMs: number;
}

/** Failures that an address, or an IPv6 network of 64 bits, may have at once. */
const BURST = 1000;
/** Failures per second that it may have in the long run. */
const PER_SECOND = 50;
/** Clients remembered; the one that failed longest ago is forgotten first. */
const MAX_CLIENTS = 10_000;
/** The budget of an IPv6 network of 48 bits, as a multiple of the budget of a network of 64 bits. */
const NETWORK_FACTOR = 8;

class TooManyFailures extends TollgateError {
  override readonly retryAfterS: number;

  constructor(missing: number) {
    super(
      'too_many_requests',
      'Too many requests with wrong credentials came from this address. Try again shortly.',
    );
    this.retryAfterS = Math.ceil(missing / PER_SECOND);
  }
}

/**
 * Limits how often a client may fail to authenticate: beyond its budget the response is 429. A client is an IPv4 address or an
 * IPv6 network of 64 bits, because that is what a single user commonly has. An IPv6 network of 48 bits has a budget as well, so that
 * moving from one network of 64 bits to the next does not help. Only failures are counted, after the credentials were looked up: a valid
 * key or root token works even when others fail from its address. Each process has a separate budget.
 */
export class FailedCredentials {
  readonly #clock: Clock;
  readonly #sitesOf: (req: IncomingMessage) => AddressSites;
  readonly #buckets = new BoundedCache<Bucket>(MAX_CLIENTS);

  constructor({ clock, trustedProxies, sitesOf: sites }: FailedCredentialsOptions) {
    this.#clock = clock;
    this.#sitesOf = sites ?? ((req) => sitesOf(clientAddress(req, trustedProxies)));
  }

  /**
   * Counts `count` failures of one request. Returns the error for the response: `failure`, or `too_many_requests` if the budget has not as
   * many left, or as a whole; then none is counted.
   */
  errorFor(req: IncomingMessage, failure: TollgateError, count = 1): TollgateError {
    const { site, network } = this.#sitesOf(req);
    const needed = Math.min(count, BURST);
    const ofSite = this.#refilled(site, 1);
    const ofNetwork = network === undefined ? undefined : this.#refilled(network, NETWORK_FACTOR);
    const missing = needed - Math.min(ofSite.left, ofNetwork?.left ?? needed);
    if (missing > 0) return new TooManyFailures(missing);
    ofSite.left -= needed;
    if (ofNetwork !== undefined) ofNetwork.left -= needed;
    return failure;
  }

  /** Identifies the client for fair queues: IPv4 address or /64 network, or the /48 network once that has used up its budget. */
  clientOf(req: IncomingMessage): string {
    const { site, network } = this.#sitesOf(req);
    if (network === undefined || !this.#buckets.has(network)) return site;
    return this.#refilled(network, NETWORK_FACTOR).left < 1 ? network : site;
  }

  #refilled(client: string, factor: number): Bucket {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#buckets.get(client);
    if (known === undefined) {
      const full = { left: factor * BURST, atMs: nowMs };
      this.#buckets.set(client, full);
      return full;
    }
    const refill = ((nowMs - known.atMs) / 1000) * factor * PER_SECOND;
    known.left = Math.min(factor * BURST, known.left + refill);
    known.atMs = nowMs;
    return known;
  }
}
