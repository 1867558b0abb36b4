import { TollgateError } from '../../errors.ts';
import type { Limit } from '../../limiter/limit.ts';
import { parsePeriod } from '../../limiter/period.ts';
import type { Exchange, Step } from '../exchange.ts';
import { unavailable } from '../key-errors.ts';
import { CurrentKey, type CurrentKeyOptions } from './authenticate.ts';

const REQUESTS_A_SECOND = 5;
/** No limit of a plan can have this id. */
const LIMIT_ID = '~self-service';

/**
 * Lets a key make only a few requests a second about itself, counted over all replicas and apart from its plan. The same call finds out
 * whether the copy of the key is current, so a change to a key applies from its next request on here too. A later step sends a rejection.
 */
export function limitSelfService(options: CurrentKeyOptions): Step {
  const { limiter } = options;
  const currentKey = new CurrentKey(options);
  const limits = [ownLimit()];

  function decide(exchange: Exchange): void {
    const { entry, rejection } = exchange;
    if (rejection !== undefined || entry === undefined) {
      exchange.next();
      return;
    }
    const { keyId, version } = entry.snapshot;
    const subject = {
      keyId,
      version,
      fresh: exchange.isFresh,
      limits,
      cost: 1,
      customerId: '',
      mayRelease: false,
    };
    limiter.decide(subject, (decision) => {
      if (decision.kind === 'stale') {
        currentKey.reload(exchange, entry, decide);
        return;
      }
      if (decision.kind === 'unavailable') exchange.rejection = unavailable(decision.cause);
      else if (decision.kind === 'limited') exchange.rejection = tooMany();
      exchange.next();
    });
  }

  return decide;
}

function ownLimit(): Limit {
  const period = parsePeriod('second');
  if (period === undefined) throw new Error('A second is no period.');
  return {
    id: LIMIT_ID,
    limit: REQUESTS_A_SECOND,
    baseLimit: REQUESTS_A_SECOND,
    endsAtMs: null,
    period,
    periodText: 'second',
    per: 'key',
    mode: 'enforce',
    windowName: `${LIMIT_ID}:${period.token}`,
  };
}

function tooMany(): TollgateError {
  return new TollgateError(
    'too_many_requests',
    `A key may make ${REQUESTS_A_SECOND} requests a second about itself. Try again shortly.`,
  );
}
