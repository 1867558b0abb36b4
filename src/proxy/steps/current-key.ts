import type { BlockList } from 'node:net';
import { TollgateError } from '../../errors.ts';
import { clientAddress } from '../../http/client-address.ts';
import type { FailedCredentials } from '../../http/failed-credentials.ts';
import { resembledManagementPath } from '../../http/reserved-paths.ts';
import type { KeyCache, KeyEntry } from '../../keys/cache/key-cache.ts';
import { type RequestSource, restrictionFault } from '../../keys/key-restrictions.ts';
import { type RateLimiter, WITHOUT_LIMITS } from '../../limiter/rate-limiter.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Exchange, Step } from '../exchange.ts';

/** What it takes to know whether a copy of a key is current. */
export interface CurrentKeyOptions {
  readonly keys: Pick<KeyCache, 'reload'>;
  /** Compares the copy's version with the shared one. */
  readonly limiter: RateLimiter;
  /** Limits how often an address may fail to authenticate; undefined = no limit. */
  readonly failedCredentials?: FailedCredentials;
  /** Proxies that may say which address a request came from. */
  readonly trustedProxies: BlockList;
  readonly clock: Clock;
}

/** A copy that was read for the request is stale only when the key was deleted after that: then the second read finds nothing. */
const MAX_RELOADS = 2;

/**
 * The copy of a key that a request goes by, whichever step finds out what:
 *
 *     cached or fresh ── may be used ──────────────────────► the request goes on
 *        │                                                        │ the limiter calls the copy stale
 *        │ may not be used                                        ▼
 *        ├── the shared version is another one: stale ──► read again: fresh ──► judged once more
 *        └── it is the same ──► rejected
 *
 * So what memory says against a key is said only when the shared version confirms it, and a change holds with the next request.
 */
export class CurrentKey {
  readonly #options: CurrentKeyOptions;

  constructor(options: CurrentKeyOptions) {
    this.#options = options;
  }

  /**
   * Goes on with `usable`, the copy being the request's `entry`, or rejects. `entry` is undefined for a key that does not exist. A request
   * that comes from where its key may not be used goes on as well, with a rejection: it is recorded like any other of the key.
   */
  judge(exchange: Exchange, entry: KeyEntry | undefined, usable: Step): void {
    const judgement = judged(entry, this.#options.clock);
    if (judgement instanceof TollgateError) {
      if (entry === undefined) this.reject(exchange, judgement);
      else this.#ifCurrent(exchange, entry, { usable, confirmed: () => this.reject(exchange, judgement) });
      return;
    }
    const fault = this.#restrictionFault(exchange, judgement);
    if (fault === undefined) {
      exchange.entry = judgement;
      usable(exchange);
      return;
    }
    const confirmed: Step = () => {
      exchange.entry = judgement;
      exchange.rejection = fault;
      usable(exchange);
    };
    this.#ifCurrent(exchange, judgement, { usable, confirmed });
  }

  /** Reads a stale copy again, and judges what was read. */
  reload(exchange: Exchange, entry: KeyEntry, usable: Step): void {
    // Until the copy was read again the key may be gone: a request that ends meanwhile is recorded without a key.
    exchange.entry = undefined;
    if (exchange.reloads === MAX_RELOADS) {
      exchange.reject(unavailable(new Error('A copy read for this request was called stale.')));
      return;
    }
    exchange.reloads += 1;
    this.#options.keys.reload(entry, (error, reloaded) => {
      exchange.isFresh = true;
      if (error) exchange.reject(unavailable(error));
      else this.judge(exchange, reloaded, usable);
    });
  }

  /** Responds that the credential is wrong, or that its address has sent too many wrong ones. */
  reject(exchange: Exchange, fault: TollgateError): void {
    const error = this.#options.failedCredentials?.errorFor(exchange.req, fault) ?? fault;
    exchange.reject(withManagementPath(error, exchange.head.path));
  }

  #restrictionFault(exchange: Exchange, { snapshot }: KeyEntry): TollgateError | undefined {
    const { restrictions } = snapshot;
    return restrictions === null
      ? undefined
      : restrictionFault(restrictions, sourceOf(exchange, this.#options.trustedProxies));
  }

  /** Decides without a quota, so that nothing is counted. That installs the version of a fresh copy, which no other call would do. */
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
  return { address: clientAddress(req, trustedProxies) };
}

/** The key if it may be used now, otherwise why not. Undefined stands for one that does not exist, or not any more. */
export function judged(entry: KeyEntry | undefined, clock: Clock): KeyEntry | TollgateError {
  if (entry === undefined) return invalidKey();
  const { enabled, expiresAtMs } = entry.snapshot;
  if (!enabled) return new TollgateError('key_disabled', 'The consumer API key is disabled.');
  if (expiresAtMs !== null && expiresAtMs <= clock.nowMs()) {
    return new TollgateError('key_expired', 'The consumer API key has expired.');
  }
  return entry;
}

/** No key has this secret. */
export function invalidKey(): TollgateError {
  return new TollgateError('invalid_api_key', 'The consumer API key is not valid.');
}

/** The error with the management path that an administrator meant who came to the proxy by a path that resembles it. */
export function withManagementPath(error: TollgateError, path: string): TollgateError {
  const meant = resembledManagementPath(path);
  if (meant === undefined || error.code === 'too_many_requests') return error;
  return new TollgateError(
    error.code,
    `${error.message} The management interface has ${meant}, on ADMIN_PORT where that is set.`,
  );
}

/** A store did not respond: the request can't be judged. */
export function unavailable(cause: unknown): TollgateError {
  return cause instanceof TollgateError
    ? cause
    : new TollgateError(
        'store_unavailable',
        'A store that this response needs is not available. Try again shortly.',
        cause,
      );
}
