import { changedFields, type FieldChanges } from '../../audit/audit-entry.ts';
import { LimitNotFound, TollgateError } from '../../errors.ts';
import { bodySchema, type FieldSchema } from '../../http/body-schema.ts';
import { keyTarget } from '../../keys/audited-key.ts';
import type { KeySnapshot } from '../../keys/consumer-key.ts';
import { ANONYMOUS_CUSTOMER, CUSTOMER_ID, type Limit } from '../../limiter/request-limits.ts';
import type { WindowCounts } from '../../limiter/window-counters.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import type { Endpoint, ManagementServices } from '../endpoint.ts';
import { LIMIT, LIMIT_ID } from '../plans/plan-schema.ts';
import { INSTANT, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { ifAvailable, presentCounters, SHOWN_COUNTERS } from './shown-counters.ts';

const CUSTOMER: FieldSchema = {
  description: 'must be 1 to 128 printable ASCII characters',
  type: 'string',
  pattern: CUSTOMER_ID.source,
};
const REASON: FieldSchema = {
  description: 'must be a string of at most 256 characters without NUL or unpaired surrogates',
  type: 'string',
  maxLength: 256,
  format: 'stored-text',
};

const KEY_LIMITS = named(
  'KeyLimits',
  objectOf({
    consumerApiKeyId: TEXT,
    rateLimitId: { ...orNull(TEXT), description: 'The plan that applies; null when none does.' },
    now: INSTANT,
    degraded: { type: 'boolean', description: 'The store of the counts is unavailable: they are null.' },
    limits: SHOWN_COUNTERS,
  }),
);

/** Chooses the customer whose windows are shown. */
export const CUSTOMER_QUERY = {
  customerId: {
    ...CUSTOMER,
    description: `Whose windows of the limits for each customer are shown; "${ANONYMOUS_CUSTOMER}" where it is missing. ${CUSTOMER.description}.`,
  },
};

/** Shows the live counters of a key. */
export const showKeyLimits: Endpoint = {
  method: 'get',
  path: '/consumer-api-key/{consumerApiKeyId}/limits',
  operationId: 'showKeyLimits',
  summary: 'Show the live counters of a consumer API key',
  scope: 'keys:read',
  query: CUSTOMER_QUERY,
  status: 200,
  response: KEY_LIMITS,
  errors: ['key_not_found'],
  async handle({ id, query, principal }, services) {
    const customerId = readCustomer(query.customerId);
    const { snapshot } = await services.keys.record(id, principal.onlyTags);
    return showLimits(snapshot, customerId, services);
  },
};

interface ResetBody {
  readonly limitId?: string;
  readonly customerId?: string;
  readonly reason?: string;
}
const RESET_BODY = bodySchema([], { limitId: LIMIT_ID, customerId: CUSTOMER, reason: REASON });

/**
 * Closes windows of a key, so that its next request opens new ones: all of them, those of one limit, or those of one customer. Without a
 * `customerId` the windows of all customers are closed.
 */
export const resetKeyLimits: Endpoint<ResetBody> = {
  method: 'post',
  path: '/consumer-api-key/{consumerApiKeyId}/limits/reset',
  operationId: 'resetKeyLimits',
  summary: 'Reset the live counters of a consumer API key',
  scope: 'limits:write',
  body: RESET_BODY,
  withoutTransaction: true,
  status: 200,
  response: KEY_LIMITS,
  errors: ['key_not_found', 'limit_not_found'],
  async handle({ id, body, change }, services) {
    const { limitId, customerId, reason } = body;
    const { key, snapshot } = await services.keys.record(id, change.onlyTags);
    const limits = chosenLimits(snapshot, { limitId, customerId });
    const action = { action: 'limits.reset', target: keyTarget(key), changes: auditedBody(body) } as const;
    await services.audit.accompany(action, { ...change, reason: reason ?? change.reason }, () =>
      services.counters.reset({ keyId: id, limits, customerId: customerId ?? null }),
    );
    // Without the reason: the audit log has it, with secrets masked.
    services.log.info({ event: 'limits_reset', keyId: id, limitId }, 'limits of a key were reset');
    return showLimits(snapshot, customerId ?? ANONYMOUS_CUSTOMER, services);
  },
};

interface GrantBody extends ResetBody {
  readonly requests: number;
}
const GRANT_BODY = bodySchema(['requests'], { requests: LIMIT, ...RESET_BODY.properties });

/** Raises the remaining quota of a key's present windows: of all, of those of one limit, or of those of one customer. */
export const grantKeyLimits: Endpoint<GrantBody> = {
  method: 'post',
  path: '/consumer-api-key/{consumerApiKeyId}/limits/grant',
  operationId: 'grantKeyLimits',
  summary: 'Give a consumer API key more room in its present windows',
  scope: 'limits:write',
  body: GRANT_BODY,
  withoutTransaction: true,
  status: 200,
  response: KEY_LIMITS,
  errors: ['key_not_found', 'limit_not_found'],
  async handle({ id, operationId, body, change }, services) {
    const { requests, limitId, customerId, reason } = body;
    const { key, snapshot } = await services.keys.record(id, change.onlyTags);
    const limits = chosenLimits(snapshot, { limitId, customerId });
    const whose = customerId ?? ANONYMOUS_CUSTOMER;
    const action = { action: 'limits.grant', target: keyTarget(key), changes: auditedBody(body) } as const;
    await services.audit.accompany(action, { ...change, reason: reason ?? change.reason }, () =>
      services.counters.grant({ keyId: id, limits, customerId: whose, units: requests, operationId }),
    );
    services.log.info({ event: 'limits_granted', keyId: id, limitId, requests }, 'a key was given more room');
    return showLimits(snapshot, whose, services);
  },
};

/** The requested change without the reason, which the audit log keeps separately. */
function auditedBody({ reason: _, ...requested }: ResetBody): FieldChanges {
  return changedFields(null, { ...requested });
}

/** The limit that the body names, or else all; with a customer, only limits for each customer. */
function chosenLimits(
  { plan }: KeySnapshot,
  { limitId, customerId }: Readonly<Record<'limitId' | 'customerId', string | undefined>>,
): readonly Limit[] {
  const all = plan?.limits.all ?? [];
  const chosen = all.filter(
    ({ id, per }) =>
      (limitId === undefined || id === limitId) && (customerId === undefined || per === 'customer'),
  );
  if (chosen.length === 0) {
    throw new LimitNotFound(
      all.map(({ id }) => id),
      limitId,
    );
  }
  return chosen;
}

async function showLimits(
  snapshot: KeySnapshot,
  customerId: string,
  services: ManagementServices,
): Promise<object> {
  const { keyId, plan } = snapshot;
  const counts = await readCounts(snapshot, customerId, services);
  const nowMs = counts?.nowMs ?? services.clock.nowMs();
  return {
    consumerApiKeyId: keyId,
    rateLimitId: plan?.id ?? null,
    now: isoSeconds(nowMs),
    degraded: counts === undefined,
    limits: presentCounters(plan, counts, nowMs),
  };
}

/** Undefined if Redis is unavailable. */
export function readCounts(
  { keyId, plan }: KeySnapshot,
  customerId: string,
  { counters }: ManagementServices,
): Promise<WindowCounts | undefined> {
  return ifAvailable(counters.read({ keyId, limits: plan?.limits.all ?? [], customerId }));
}

/** Reads `CUSTOMER_QUERY`. Throws `invalid_parameter`. */
export function readCustomer(value: string | string[] | undefined): string {
  if (value === undefined) return ANONYMOUS_CUSTOMER;
  if (typeof value === 'string' && CUSTOMER_ID.test(value)) return value;
  throw new TollgateError('invalid_parameter', `The query parameter "customerId" ${CUSTOMER.description}.`);
}
