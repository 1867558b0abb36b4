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
      keys.confirm(entry, (confirmed, fresh) => {
        exchange.isFresh = fresh;
        currentKey.judgeAgain(exchange, confirmed, goOn);
      });
    } else {
      currentKey.judge(exchange, entry, goOn);
    }
  };
}
