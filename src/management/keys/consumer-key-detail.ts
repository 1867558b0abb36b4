import type { ChangeContext } from '../../audit/change-context.ts';
import { StoreUnavailable } from '../../errors.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { keyTarget } from '../../keys/audited-key.ts';
import type { ConsumerKey, KeySnapshot } from '../../keys/consumer-key.ts';
import { windowEndMs } from '../../limiter/period.ts';
import { type DecidedWindow, limitAt, remainingIn, tightestWindow } from '../../limiter/request-limits.ts';
import type { WindowCounter } from '../../limiter/window-counters.ts';
import { isoSeconds, isoSecondsUp } from '../../platform/timestamps.ts';
import type { UsageCounts } from '../../usage/usage-counts.ts';
import { type Endpoint, type ManagementServices, Reply } from '../endpoint.ts';
import { queryParameters } from '../query-parameters.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { presentKeyFields, SHOWN_KEY_FIELDS } from './shown-key-fields.ts';

const COUNTS = { requests: COUNT, successful: COUNT, failed: COUNT };

/** The totals of a key's usage. */
export const SHOWN_TOTALS = { totalRequests: COUNT, successfulRequests: COUNT, failedRequests: COUNT };

const USAGE = named(
  'KeyUsage',
  objectOf({
    ...SHOWN_TOTALS,
    rateLimits: {
      ...orNull(named('TightestLimit', objectOf({ limit: COUNT, remaining: COUNT, resetTime: INSTANT }))),
      description: 'The tightest of the limits of the key. Null when no limit applies to it.',
    },
    endpoints: listOf(
      named(
        'EndpointUsage',
        objectOf({
          endpoint: TEXT,
          ...COUNTS,
          averageResponseTimeMs: { type: 'number', minimum: 0 },
        }),
      ),
    ),
    usageByCustomer: listOf(named('CustomerUsage', objectOf({ customerId: TEXT, ...COUNTS }))),
  }),
);

const DETAIL_QUERY = {
  reveal: {
    description:
      'must be true or false: whether to show the secret, of which the audit log then has an entry, or asterisks',
    type: 'string',
    enum: ['true', 'false'],
    default: 'true',
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { readWord } = queryParameters(DETAIL_QUERY);

/** Shows a key with its secret, its usage and the state of its window. */
export const showConsumerKey: Endpoint = {
  method: 'get',
  path: '/consumer-api-key/{consumerApiKeyId}',
  operationId: 'showConsumerKey',
  summary: 'Show a consumer API key with its secret and its usage',
  scope: 'keys:read',
  query: DETAIL_QUERY,
  status: 200,
  tagged: true,
  response: named(
    'ConsumerKeyDetail',
    objectOf({
      consumerApiKeyId: TEXT,
      name: TEXT,
      secret: {
        ...TEXT,
        description:
          'Asterisks with reveal=false, for a token without the scope keys:secret, and when secrets are shown only once (setting SECRET_REVEAL).',
      },
      createdAt: INSTANT,
      lastUpdated: INSTANT,
      ...SHOWN_KEY_FIELDS,
      usage: USAGE,
    }),
  ),
  errors: ['key_not_found'],
  async handle({ id, query, isHead, principal, change }, services) {
    const isWanted = readWord(query, 'reveal', ['true', 'false']) !== 'false';
    const stored = await services.keys.record(id, principal.onlyTags);
    const { key, snapshot } = stored;
    const maySee = isWanted && !isHead && principal.scopes.has('keys:secret');
    const secret = maySee ? services.keys.openSecret(stored) : null;
    const isShown = secret !== null && (await recordShowing(key, change, services));
    const [usage, rateLimits] = await Promise.all([
      services.usage.read(key.id),
      readRateLimits(snapshot, services),
    ]);
    return Reply.tagged(key, {
      consumerApiKeyId: key.id,
      name: key.name,
      secret: isShown ? secret : services.keys.maskedSecret,
      createdAt: isoSeconds(key.createdAtMs),
      lastUpdated: isoSeconds(key.updatedAtMs),
      ...presentKeyFields({ ...key, lastUsedAtMs: usage.lastUsedAtMs }),
      usage: {
        ...presentTotals(usage),
        rateLimits,
        endpoints: usage.endpoints,
        usageByCustomer: usage.customers,
      },
    });
  },
};

/** Resolves with whether the audit log was written. If it can't be, the secret is masked, but the rest of the key is shown. */
async function recordShowing(
  key: ConsumerKey,
  change: ChangeContext,
  { audit, log }: ManagementServices,
): Promise<boolean> {
  try {
    await audit.record({ action: 'key.show-secret', target: keyTarget(key), changes: {} }, change);
    return true;
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    log.warn({ err: error, keyId: key.id }, 'a secret was masked: the audit log could not be written');
    return false;
  }
}

/** The tightest window of the key itself. The windows of its customers are shown with its live counters. */
async function readRateLimits(
  { keyId, plan }: KeySnapshot,
  { counters }: ManagementServices,
): Promise<object | null> {
  const limits = plan?.limits.all.filter(({ per, mode }) => per === 'key' && mode === 'enforce') ?? [];
  if (limits.length === 0) return null;
  const counts = await counters.read({ keyId, limits, customerId: '' });
  const tightest = tightestWindow(counts.counters.map((counter) => windowOf(counter, counts.nowMs)));
  return tightest === undefined ? null : presentWindow(tightest);
}

/** A key without an open window has its whole limit, and a window that would open now. */
function windowOf({ limit, used, granted, resetAtMs }: WindowCounter, nowMs: number): DecidedWindow {
  return {
    limit,
    quota: limitAt(limit, nowMs),
    used: used - granted,
    resetAtMs: resetAtMs ?? windowEndMs(nowMs, limit.period),
    isExceeded: false,
    isShared: false,
  };
}

/** The state of a window. */
export function presentWindow(window: DecidedWindow): object {
  return {
    limit: window.quota,
    remaining: remainingIn(window),
    resetTime: isoSecondsUp(window.resetAtMs),
  };
}

/** The totals of `SHOWN_TOTALS`. */
export function presentTotals(usage: UsageCounts): object {
  return {
    totalRequests: usage.requests,
    successfulRequests: usage.successful,
    failedRequests: usage.failed,
  };
}
