import { TollgateError } from '../errors.ts';
import { readBearer } from '../http/bearer.ts';
import type { FailedCredentials } from '../http/failed-credentials.ts';
import type { KeyGrant } from '../keys/consumer-key.ts';
import type { KeyDirectory, KeyEntry } from '../keys/key-directory.ts';
import type { Clock } from '../platform/clock.ts';
import type { Exchange, Step } from './exchange.ts';

/** What the pipeline asks of the key directory. */
export type KeySource = Pick<KeyDirectory, 'find' | 'load' | 'reload' | 'confirm'>;

/** What it takes to know who is asking. */
export interface AuthenticateOptions {
  readonly keys: KeySource;
  /** Bounds how often an address is told that its key is wrong; undefined = not at all. */
  readonly failedCredentials?: FailedCredentials;
  readonly clock: Clock;
}

/**
 * Finds the key whose secret the request presents, from memory or from the record store. A request without a valid, enabled,
 * unexpired key is answered 401 here and touches nothing of any key; a record store that does not answer is a 503, never a 401.
 * An address that goes on with wrong keys is answered 429 instead, but each key is judged first: a valid one is always let through.
 */
export function authenticate({ keys, clock, failedCredentials }: AuthenticateOptions): Step {
  function refuse(exchange: Exchange, failure: TollgateError): void {
    exchange.refuse(failedCredentials?.answerTo(exchange.req, failure) ?? failure);
  }

  function accept(exchange: Exchange, entry: KeyEntry): void {
    const fault = grantFault(entry.grant, clock);
    if (fault !== undefined) {
      refuse(exchange, fault);
      return;
    }
    exchange.entry = entry;
    exchange.next();
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
      accept(exchange, entry);
      return;
    }
    keys.load(credential.token, (error, loaded, fresh) => {
      exchange.isFresh = fresh;
      if (error) exchange.refuse(unavailable(error));
      else if (loaded === undefined) refuse(exchange, invalidKey());
      else accept(exchange, loaded);
    });
  };
}

/** Why a key that exists may not be used now; undefined = it may. */
export function grantFault(grant: KeyGrant, clock: Clock): TollgateError | undefined {
  if (!grant.enabled) return new TollgateError('key_disabled', 'The consumer API key is disabled.');
  if (grant.expiresAtMs !== null && grant.expiresAtMs <= clock.nowMs()) {
    return new TollgateError('key_expired', 'The consumer API key has expired.');
  }
  return undefined;
}

/** There is no key with this secret, or not any more. */
export function invalidKey(): TollgateError {
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
