import type { BlockList } from 'node:net';
import { InvalidApiKey, KeyDisabled, KeyExpired, type TollgateError } from '../../errors.ts';
import { clientAddress } from '../../http/client-address.ts';
import { readBearer } from '../../http/credentials/bearer.ts';
import type { FailedCredentials } from '../../http/credentials/failed-credentials.ts';
import type { IsOwnPage } from '../../http/own-page.ts';
import type { KeyCache } from '../../keys/cache/key-cache.ts';
import type { KeyEntry } from '../../keys/cache/key-entry.ts';
import { type KeyRestrictions, type RequestSource, restrictionFault } from '../../keys/key-restrictions.ts';
import { type RateLimiter, WITHOUT_LIMITS } from '../../limiter/rate-limiter.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Exchange, Step } from '../exchange.ts';
import { missingKey, unavailable, withManagementPath } from '../key-errors.ts';
import { untilDeadline } from '../look-up-deadline.ts';
import type { CrossOrigin } from './cors.ts';

/** The part of the key cache that the pipeline uses. */
export type KeySource = Pick<KeyCache, 'find' | 'isUnchecked' | 'confirm' | 'load' | 'reload'>;

/** What authentication needs. */
export interface AuthenticateOptions extends CurrentKeyOptions {
  readonly keys: KeySource;
}

/**
 * Finds the key whose secret the request presents, in memory or in the record store. A request without a valid, enabled, unexpired key
 * gets 401 and changes nothing of any key. If the record store does not respond, the request gets 503, never 401. An address that sends
 * many wrong keys gets 429 instead of 401, but each key is looked up first: a valid one always works.
 */
export function authenticate(options: AuthenticateOptions): Step {
  const { keys } = options;
  const currentKey = new CurrentKey(options);
  const goOn: Step = (exchange) => exchange.next();

  return (exchange) => {
    const credential = readBearer(exchange.req.headers.authorization);
    if (credential.kind === 'missing') {
      const error = missingKey(exchange);
      options.crossOrigin.followAnyKey(exchange, () => exchange.reject(error));
      return;
    }
    if (credential.kind === 'malformed') {
      currentKey.rejectUnknown(exchange);
      return;
    }
    exchange.secret = credential.token;
    const entry = keys.find(credential.token);
    if (entry === undefined) {
      currentKey.load(exchange, goOn);
    } else if (keys.isUnchecked(entry, exchange.startedAtMs)) {
      const ended = untilDeadline<KeyEntry>(exchange, options.clock, (error, confirmed, fresh = false) => {
        exchange.isFresh = fresh;
        if (error) exchange.reject(unavailable(error));
        else currentKey.judgeAgain(exchange, confirmed, goOn);
      });
      keys.confirm(entry, (confirmed, fresh) => ended(null, confirmed, fresh));
    } else {
      currentKey.judge(exchange, entry, goOn);
    }
  };
}

/** What is needed to find out whether a cached key is current. */
export interface CurrentKeyOptions {
  readonly keys: Pick<KeyCache, 'load' | 'reload'>;
  /** Compares the copy's version with the shared one. */
  readonly limiter: RateLimiter;
  /** Limits how often an address may fail to authenticate. */
  readonly failedCredentials: FailedCredentials;
  /** Proxies that may say which address a request came from. */
  readonly trustedProxies: BlockList;
  readonly crossOrigin: CrossOrigin;
  /** Pages that may use every key whatever its origins; undefined: none. */
  readonly isOwnPage?: IsOwnPage;
  readonly clock: Clock;
}

/** A copy that was read for this request is stale only if the key was deleted after the read: then the second read finds nothing. */
const MAX_RELOADS = 2;

/** Why a key that Postgres has can't be used, for the log: as after the restore of a backup, if Redis was not emptied. */
class DeletedInRedis extends Error {
  override readonly name = 'DeletedInRedis';
}

/**
 * Decides whether a request may use its copy of a key, and reads a stale copy again:
 *
 *     cached or fresh ── may be used ──────────────────────► the request goes on
 *        │                                                        │ the limiter calls the copy stale
 *        │ may not be used                                        ▼
 *        ├── the shared version is another one: stale ──► read again: fresh ──► judged once more
 *        │                                                        └── no secret of that key any more: looked up by the secret
 *        └── it is the same ──► rejected
 *
 * So a cached key is rejected only after the shared version has confirmed the copy, and a change applies from the next request on.
 */
export class CurrentKey {
  readonly #options: CurrentKeyOptions;

  constructor(options: CurrentKeyOptions) {
    this.#options = options;
  }

  /**
   * Sets the request's `entry` and calls `usable`, or rejects the request. `entry` is undefined for a key that does not exist. A request
   * from an address or origin that its key does not allow goes on too, with a `rejection`: it is recorded like any other of the key.
   */
  judge(exchange: Exchange, entry: KeyEntry | undefined, usable: Step): void {
    const { clock, crossOrigin } = this.#options;
    // The origins of the previous copy do not count any more.
    if (exchange.reloads > 0) crossOrigin.followSetting(exchange);
    if (entry === undefined) {
      this.rejectUnknown(exchange);
      return;
    }
    const { restrictions } = entry.snapshot;
    if (restrictions?.origins) crossOrigin.followKey(exchange, restrictions.origins);
    const fault = keyFault(entry, clock);
    if (fault !== undefined) {
      this.#ifCurrent(exchange, entry, { usable, confirmed: () => this.#reject(exchange, fault) });
      return;
    }
    const rejection = sourceFault(exchange, restrictions, this.#options);
    if (rejection === undefined) {
      exchange.entry = entry;
      usable(exchange);
      return;
    }
    const confirmed: Step = () => {
      exchange.entry = entry;
      exchange.rejection = rejection;
      usable(exchange);
    };
    this.#ifCurrent(exchange, entry, { usable, confirmed });
  }

  /** Looks up the key of the presented secret in the record store, and judges it. */
  load(exchange: Exchange, usable: Step): void {
    const { keys, failedCredentials, crossOrigin, clock } = this.#options;
    const client = failedCredentials.clientOf(exchange.req);
    const ended = untilDeadline<KeyEntry>(exchange, clock, (error, entry, fresh = false) => {
      exchange.isFresh = fresh;
      if (error) {
        crossOrigin.followKnownOrigins(exchange);
        exchange.reject(unavailable(error));
      } else this.judge(exchange, entry, usable);
    });
    keys.load(exchange.secret, client, ended);
  }

  /** Judges a copy that was read again; undefined when the presented secret is no longer that key's. It may then be another key's. */
  judgeAgain(exchange: Exchange, entry: KeyEntry | undefined, usable: Step): void {
    if (entry === undefined) this.load(exchange, usable);
    else this.judge(exchange, entry, usable);
  }

  /** Reads a stale copy again, and judges what was read. */
  reload(exchange: Exchange, entry: KeyEntry, usable: Step): void {
    // Until the copy has been read again, the key may be gone: a request that ends meanwhile is logged without a key.
    exchange.entry = undefined;
    if (exchange.reloads === MAX_RELOADS) {
      exchange.reject(unavailable(new DeletedInRedis()));
      return;
    }
    exchange.reloads += 1;
    const { keys, clock } = this.#options;
    const ended = untilDeadline<KeyEntry>(exchange, clock, (error, reloaded) => {
      exchange.isFresh = true;
      if (error) exchange.reject(unavailable(error));
      else this.judgeAgain(exchange, reloaded, usable);
    });
    keys.reload(entry, ended);
  }

  /** Rejects a credential that belongs to no key: 401, or 429 when its address has sent too many wrong ones. */
  rejectUnknown(exchange: Exchange): void {
    const fault = this.#faultOf(exchange, new InvalidApiKey());
    // A client that guesses causes no look-up of its origin.
    if (fault.code === 'too_many_requests') exchange.reject(fault);
    else this.#options.crossOrigin.followAnyKey(exchange, () => exchange.reject(fault));
  }

  #reject(exchange: Exchange, fault: TollgateError): void {
    exchange.reject(this.#faultOf(exchange, fault));
  }

  #faultOf({ req, head }: Exchange, fault: TollgateError): TollgateError {
    const error = this.#options.failedCredentials.errorFor(req, fault);
    return withManagementPath(error, head.path);
  }

  /**
   * Calls `confirmed` if the copy is current; otherwise reads it again. Asks the limiter without limits, so that nothing is counted. The
   * call also installs the version of a fresh copy, which no other call would do.
   */
  #ifCurrent(
    exchange: Exchange,
    entry: KeyEntry,
    { usable, confirmed }: { readonly usable: Step; readonly confirmed: Step },
  ): void {
    const { keyId, version } = entry.snapshot;
    this.#options.limiter.decide(
      { keyId, version, fresh: exchange.isFresh, ...WITHOUT_LIMITS },
      (decision) => {
        if (decision.kind === 'stale') this.reload(exchange, entry, usable);
        else if (decision.kind === 'unavailable' && !exchange.isFresh)
          exchange.reject(unavailable(decision.cause));
        else confirmed(exchange);
      },
    );
  }
}

/** Where a request comes from. */
export function sourceOf({ req }: Exchange, trustedProxies: BlockList): RequestSource {
  const { origin, 'sec-fetch-site': fetchSite } = req.headers;
  return { address: clientAddress(req, trustedProxies), origin, isFromBrowser: fetchSite !== undefined };
}

/** Why a key may not be used for this request because of where it comes from; undefined when it may. */
export function sourceFault(
  exchange: Exchange,
  restrictions: KeyRestrictions | null,
  { trustedProxies, isOwnPage }: Pick<CurrentKeyOptions, 'trustedProxies' | 'isOwnPage'>,
): TollgateError | undefined {
  if (restrictions === null) return undefined;
  const isOwn = restrictions.origins !== null && isOwnPage?.(exchange.req);
  const applying = isOwn ? { ...restrictions, origins: null } : restrictions;
  return restrictionFault(applying, sourceOf(exchange, trustedProxies));
}

/** Why a key may not be used now, from any address or origin; undefined when it may. */
export function keyFault({ snapshot, previousUntilMs }: KeyEntry, clock: Clock): TollgateError | undefined {
  const { enabled, expiresAtMs } = snapshot;
  if (previousUntilMs !== null && previousUntilMs <= clock.nowMs()) return new InvalidApiKey();
  if (!enabled) return new KeyDisabled();
  if (expiresAtMs !== null && expiresAtMs <= clock.nowMs()) return new KeyExpired();
  return undefined;
}
