import { readBearer } from '../../http/credentials/bearer.ts';
import type { KeyCache } from '../../keys/cache/key-cache.ts';
import type { Step } from '../exchange.ts';
import { CurrentKey, type CurrentKeyOptions, missingKey } from './current-key.ts';

/** The part of the key cache that the pipeline uses. */
export type KeySource = Pick<KeyCache, 'find' | 'isUnchecked' | 'confirm' | 'load' | 'reload'>;

/** What authentication needs. */
export interface AuthenticateOptions extends CurrentKeyOptions {
  readonly keys: KeySource;
}

/**
 * Finds the key whose secret the request presents, from memory or from the record store. A request without a valid, enabled,
 * unexpired key gets 401 here and touches nothing of any key; a record store that does not respond is a 503, never a 401.
 * An address that goes on with wrong keys gets 429 instead, but each key is judged first: a valid one is always let through.
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
      keys.confirm(entry, (confirmed, fresh) => {
        exchange.isFresh = fresh;
        currentKey.judgeAgain(exchange, confirmed, goOn);
      });
    } else {
      currentKey.judge(exchange, entry, goOn);
    }
  };
}
