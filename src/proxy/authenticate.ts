import { TollgateError } from '../errors.ts';
import { readBearer } from '../http/bearer.ts';
import type { FailedCredentials } from '../http/failed-credentials.ts';
import type { KeyDirectory, KeyEntry } from '../keys/key-directory.ts';
import type { RateLimiter } from '../limiter/rate-limiter.ts';
import type { Clock } from '../platform/clock.ts';
import type { Exchange, Step } from './exchange.ts';

/** What the pipeline asks of the key directory. */
export type KeySource = Pick<KeyDirectory, 'find' | 'load' | 'reload' | 'confirm'>;

/** What it takes to know who is asking. */
export interface AuthenticateOptions {
  readonly keys: KeySource;
  /** Knows whether a copy is current. */
  readonly limiter: RateLimiter;
  /** Bounds how often an address is told that its key is wrong; undefined = not at all. */
  readonly failedCredentials?: FailedCredentials;
  readonly clock: Clock;
}

/**
 * Finds the key whose secret the request presents, from memory or from the record store. A request without a valid, enabled,
 * unexpired key is answered 401 here and touches nothing of any key; a record store that does not answer is a 503, never a 401.
 * What memory says against a key is said only when the shared version confirms it: a key that was enabled again, or whose expiry was
 * moved, works with its next request on every replica. An address that goes on with wrong keys is answered 429 instead, but each key is
 * judged first: a valid one is always let through.
 */
export function authenticate({ keys, limiter, clock, failedCredentials }: AuthenticateOptions): Step {
  function refuse(exchange: Exchange, failure: TollgateError): void {
    exchange.refuse(failedCredentials?.answerTo(exchange.req, failure) ?? failure);
  }

  function judge(exchange: Exchange, entry: KeyEntry | undefined, isConfirmed = false): void {
    const judgement = judged(entry, clock);
    if (!(judgement instanceof TollgateError)) {
      exchange.entry = judgement;
      exchange.next();
    } else if (entry === undefined || isConfirmed) {
      refuse(exchange, judgement);
    } else if (exchange.isFresh) {
      // Nobody else makes its version known, and the next request of this key would have it read again.
      const { keyId, version } = entry.grant;
      limiter.decide({ keyId, version, fresh: true, quota: null }, () => refuse(exchange, judgement));
    } else {
      refuseIfCurrent(exchange, entry, judgement);
    }
  }

  /** Asks without a quota, so that nothing is counted. */
  function refuseIfCurrent(exchange: Exchange, entry: KeyEntry, fault: TollgateError): void {
    const { keyId, version } = entry.grant;
    limiter.decide({ keyId, version, fresh: false, quota: null }, (decision) => {
      if (decision.kind === 'unavailable') exchange.refuse(unavailable(decision.cause));
      else if (decision.kind === 'stale') renew(exchange, entry);
      else if (decision.degraded) keys.confirm(entry, (confirmed) => judge(exchange, confirmed, true));
      else refuse(exchange, fault);
    });
  }

  function renew(exchange: Exchange, entry: KeyEntry): void {
    keys.reload(entry, (error, reloaded) => {
      exchange.isFresh = true;
      if (error) exchange.refuse(unavailable(error));
      else judge(exchange, reloaded);
    });
  }

  return (exchange) => {
    const credential = readBearer(exchange.req.headers.authorization);
    if (credential.kind === 'missing') {
      exchange.refuse(
        new TollgateError('missing_api_key', 'A consumer API key is required: Authorization: Bearer <key>.'),
      );
      return;
    }
    if (credential.kind === 'malformed') {
      refuse(exchange, invalidKey());
      return;
    }
    exchange.secret = credential.token;
    const entry = keys.find(credential.token);
    if (entry !== undefined) {
      judge(exchange, entry);
      return;
    }
    keys.load(credential.token, (error, loaded, fresh) => {
      exchange.isFresh = fresh;
      if (error) exchange.refuse(unavailable(error));
      else judge(exchange, loaded);
    });
  };
}

/** The key if it may be used now, otherwise why not. Undefined stands for one that does not exist, or not any more. */
export function judged(entry: KeyEntry | undefined, clock: Clock): KeyEntry | TollgateError {
  if (entry === undefined) return invalidKey();
  const { enabled, expiresAtMs } = entry.grant;
  if (!enabled) return new TollgateError('key_disabled', 'The consumer API key is disabled.');
  if (expiresAtMs !== null && expiresAtMs <= clock.nowMs()) {
    return new TollgateError('key_expired', 'The consumer API key has expired.');
  }
  return entry;
}

function invalidKey(): TollgateError {
  return new TollgateError('invalid_api_key', 'The consumer API key is not valid.');
}

/** A store did not answer: the request can't be judged. */
export function unavailable(cause: unknown): TollgateError {
  return cause instanceof TollgateError
    ? cause
    : new TollgateError(
        'store_unavailable',
        'A store that this answer needs is not available. Try again shortly.',
        cause,
      );
}
