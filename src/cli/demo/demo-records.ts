import type { paths } from '../../client/management-api.ts';
import { bodyOf, type ManagementClient } from '../../client/management-client.ts';
import type { Clock } from '../../platform/clock.ts';

type PlanFields = paths['/rate-limit/create']['post']['requestBody']['content']['application/json'];
/** The fields that a key is created with. */
export type KeyFields =
  paths['/consumer-api-key/create']['post']['requestBody']['content']['application/json'];

export const DAY_MS = 86_400_000;

/** The plan of the first requests. */
export async function createDemoPlan(client: ManagementClient): Promise<void> {
  await createPlan(client, {
    rateLimitId: 'demo',
    description: 'Five requests per minute, to try',
    limit: 5,
    period: 'minute',
  });
}

/** Makes plans that show what plans can do. Their limits suit the traffic: its counters move in the console within a minute. */
export async function createDemoPlans(client: ManagementClient): Promise<void> {
  await createPlan(client, {
    rateLimitId: 'standard',
    description: 'Apps: a quota, no bursts, a fair share for each customer',
    limit: 10_000,
    period: 'hour',
    additionalLimits: [
      { limitId: 'burst', limit: 10, period: 'second' },
      {
        limitId: 'search',
        limit: 12,
        period: 'minute',
        match: [{ methods: ['POST'], path: '/v1/search/**' }],
      },
      { limitId: 'tenant', limit: 60, period: 'minute', per: 'customer' },
      { limitId: 'next', limit: 45, period: 'minute', mode: 'shadow' },
    ],
    costs: [
      { methods: ['POST'], path: '/v1/reports', cost: 5 },
      { path: '/v1/health', cost: 0 },
    ],
  });
  await createPlan(client, {
    rateLimitId: 'partner',
    description: "Partners: a day's quota, of which a batch takes 250",
    limit: 10_000,
    period: 'day',
    costs: [{ methods: ['POST'], path: '/v1/batch', cost: 250 }],
  });
  await createPlan(client, {
    rateLimitId: 'trial',
    description: 'Free for everyone who tries the API',
    limit: 20,
    period: 'minute',
  });
}

/** Makes a key and returns its id and its secret. */
export async function createKey(
  client: ManagementClient,
  body: KeyFields,
): Promise<{ readonly id: string; readonly secret: string }> {
  const { id, secret = '' } = await bodyOf(client.POST('/consumer-api-key/create', { body }));
  return { id, secret };
}

/** Makes an admin token that may read everything for a day, and returns its secret. */
export async function createDemoToken(client: ManagementClient, clock: Clock): Promise<string> {
  const { secret } = await bodyOf(
    client.POST('/tollgate/admin-token/create', {
      body: { name: 'Visitor of the demo', scopes: ['read-only'], expiresAt: instantIn(DAY_MS, clock) },
    }),
  );
  return secret;
}

/** The instant this many milliseconds from now, in the form that the management interface accepts. */
export function instantIn(ms: number, clock: Clock): string {
  return new Date(clock.nowMs() + ms).toISOString();
}

async function createPlan(client: ManagementClient, body: PlanFields): Promise<void> {
  await bodyOf(client.POST('/rate-limit/create', { body }));
}
