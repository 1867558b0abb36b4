import type { ManagementClient } from '../../client/management-client.ts';
import type { Clock } from '../../platform/clock.ts';
import { createKey, DAY_MS, instantIn, type KeyFields } from './demo-records.ts';
import type { Consumer, TrafficRequest } from './demo-traffic.ts';

interface DemoConsumer extends Omit<Consumer, 'secret'> {
  readonly key: KeyFields;
}

/** For the plan "partner", which allows 40 a day. */
const BATCHES_TO_NEAR_THE_LIMIT = 36;
/** For the plan "trial": the limit is reached within seconds. */
const REQUESTS_TO_THE_LIMIT = 18;

/** The query tells the sample backend which status to send; the endpoint in the statistics does not include it. */
const CONSUMERS: readonly DemoConsumer[] = [
  {
    key: {
      name: 'Mobile app',
      rateLimitId: 'standard',
      externalId: 'acme',
      tags: ['production', 'mobile'],
    },
    pauseMs: 900,
    past: { everySteps: 1, requests: 3 },
    requests: [
      { path: '/v1/orders/1001', customer: 'north-store' },
      { path: '/v1/orders', customer: 'north-store' },
      { method: 'POST', path: '/v1/search/products', customer: 'harbour-cafe' },
      { path: '/v1/orders/1002', customer: 'harbour-cafe' },
      { path: '/v1/products', customer: 'city-books' },
      { path: '/v1/orders/9999?status=404', customer: 'city-books' },
      { method: 'POST', path: '/v1/orders', customer: 'north-store' },
      { path: '/v1/health' },
    ],
  },
  {
    key: { name: 'Billing service', rateLimitId: 'standard', externalId: 'acme', tags: ['production'] },
    pauseMs: 2300,
    past: { everySteps: 2, requests: 2 },
    requests: [
      { path: '/v1/invoices/501', customer: 'north-store' },
      { path: '/v1/invoices/502', customer: 'city-books' },
      { method: 'POST', path: '/v1/reports', customer: 'north-store' },
      { path: '/v1/invoices/503?status=500', customer: 'harbour-cafe' },
    ],
  },
  {
    // Always sends more than its plan allows.
    key: { name: 'Price crawler', rateLimitId: 'trial', externalId: 'globex', tags: ['trial'] },
    first: Array.from({ length: REQUESTS_TO_THE_LIMIT }, (): TrafficRequest => ({ path: '/v1/products' })),
    pauseMs: 1500,
    past: { everySteps: 10, requests: 24 },
    requests: [{ path: '/v1/products' }, { path: '/v1/prices' }, { path: '/v1/prices?status=404' }],
  },
  {
    key: {
      name: 'Nightly import',
      rateLimitId: 'partner',
      externalId: 'initech',
      tags: ['production', 'batch'],
    },
    first: Array.from(
      { length: BATCHES_TO_NEAR_THE_LIMIT },
      (): TrafficRequest => ({ method: 'POST', path: '/v1/batch' }),
    ),
    pauseMs: 10_000,
    requests: [{ path: '/v1/orders' }, { path: '/v1/products' }],
  },
];

/**
 * Makes the keys of a few consumers, and three that are not used: one never used, one disabled, one about to expire. Returns the
 * consumers that send requests.
 */
export async function createConsumers(client: ManagementClient, clock: Clock): Promise<readonly Consumer[]> {
  const idle: readonly KeyFields[] = [
    { name: 'Website of 2019', enabled: false, rateLimitId: 'standard', tags: ['legacy'] },
    { name: 'Hackathon', rateLimitId: 'trial', tags: ['trial'], expiresAt: instantIn(3 * DAY_MS, clock) },
    { name: 'Warehouse scanners', rateLimitId: 'standard', externalId: 'acme', tags: ['staging'] },
  ];
  for (const fields of idle) await createKey(client, fields);
  const consumers: Consumer[] = [];
  for (const { key, ...traffic } of CONSUMERS) {
    const { secret } = await createKey(client, key);
    consumers.push({ ...traffic, secret });
  }
  return consumers;
}
