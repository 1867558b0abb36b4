import { isoSeconds, isoSecondsUp } from '../http/timestamps.ts';
import type { GrantedPlan, KeyGrant } from '../keys/consumer-key.ts';
import { windowEndMs } from '../limiter/period.ts';
import type { WindowState } from '../limiter/rate-limiter.ts';
import type { CustomerUsage, EndpointUsage, KeyUsage } from '../usage/usage.ts';
import { COUNT, INSTANT, listOf, objectOf, orNull, TEXT } from './answer-schemas.ts';
import { endpoint, type ManagementServices } from './endpoint.ts';

const COUNTS = { requests: COUNT, successful: COUNT, failed: COUNT };

const USAGE = objectOf({
  totalRequests: COUNT,
  successfulRequests: COUNT,
  failedRequests: COUNT,
  rateLimits: {
    ...orNull(objectOf({ limit: COUNT, remaining: COUNT, resetTime: INSTANT })),
    description: 'Null when no limit applies to the key.',
  },
  endpoints: listOf(
    objectOf({
      endpoint: TEXT,
      ...COUNTS,
      averageResponseTimeMs: { type: 'number', minimum: 0 },
    }),
  ),
  usageByCustomer: listOf(objectOf({ customerId: TEXT, ...COUNTS })),
});

/** Shows a key with its secret, its use and the state of its window. */
export const showConsumerKey = endpoint({
  method: 'get',
  path: '/consumer-api-key/{consumerApiKeyId}',
  operationId: 'showConsumerKey',
  summary: 'Show a consumer API key with its secret and its usage',
  status: 200,
  answer: objectOf({
    consumerApiKeyId: TEXT,
    name: TEXT,
    secret: { ...TEXT, description: 'Asterisks when secrets are shown only once (setting SECRET_REVEAL).' },
    createdAt: INSTANT,
    lastUpdated: INSTANT,
    usage: USAGE,
  }),
  errors: ['key_not_found'],
  async handle({ id }, services) {
    const { key, secret, grant } = await services.keys.detail(id);
    const [usage, rateLimits] = await Promise.all([
      services.usage.read(key.id),
      readRateLimits(grant, services),
    ]);
    return {
      consumerApiKeyId: key.id,
      name: key.name,
      secret,
      createdAt: isoSeconds(key.createdAtMs),
      lastUpdated: isoSeconds(key.updatedAtMs),
      usage: { ...presentTotals(usage), rateLimits, ...presentLists(usage) },
    };
  },
});

async function readRateLimits(
  { keyId, plan }: KeyGrant,
  { limiter }: ManagementServices,
): Promise<object | null> {
  return plan === null ? null : presentWindow(plan, await limiter.peek(keyId, plan));
}

/** A key at rest has its whole limit, and a window that would open now. A limit lowered below what is used leaves nothing. */
function presentWindow({ limit, period }: GrantedPlan, { used, resetAtMs, nowMs }: WindowState): object {
  return {
    limit,
    remaining: Math.max(0, limit - used),
    resetTime: isoSecondsUp(resetAtMs ?? windowEndMs(nowMs, period)),
  };
}

function presentTotals(usage: KeyUsage): object {
  return {
    totalRequests: usage.requests,
    successfulRequests: usage.successful,
    failedRequests: usage.failed,
  };
}

function presentLists(usage: KeyUsage): object {
  return {
    endpoints: usage.endpoints.map(presentEndpoint),
    usageByCustomer: usage.customers.map(presentCustomer),
  };
}

function presentEndpoint(usage: EndpointUsage): object {
  const { endpoint, requests, successful, failed, averageResponseTimeMs } = usage;
  return { endpoint, requests, successful, failed, averageResponseTimeMs };
}

function presentCustomer({ customerId, requests, successful, failed }: CustomerUsage): object {
  return { customerId, requests, successful, failed };
}
