import { TollgateError } from '../../errors.ts';
import { parsePeriod } from '../../limiter/period.ts';
import type { Limit } from '../../limiter/request-limits.ts';
import type { Step } from '../exchange.ts';
import type { CurrentKeyOptions } from './authenticate.ts';
import { type BackendDeadline, decideWith } from './limit.ts';

const REQUESTS_A_SECOND = 5;
/** No limit of a plan can have this id. */
const LIMIT_ID = '~self-service';

/**
 * Lets a key make only a few requests a second about itself, counted over all replicas and apart from its plan. The same call finds out
 * whether the copy of the key is current, so a change to a key applies from its next request on here too. A later step sends a rejection.
 */
export function limitSelfService(options: CurrentKeyOptions & BackendDeadline): Step {
  const limits = [ownLimit()];
  return decideWith(options, {
    subjectOf: ({ isFresh }, { keyId, version }) => ({
      keyId,
      version,
      fresh: isFresh,
      limits,
      cost: 1,
      customerId: '',
      mayRelease: false,
    }),
    note(exchange, { kind }) {
      if (kind === 'limited') exchange.rejection = tooMany();
    },
  });
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
