import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { StoreUnavailable } from '../../src/errors.ts';
import type { UsageHistory } from '../../src/usage/usage-history.ts';
import { testRedisUrl } from '../support/stores.ts';
import { completed, requestsOf } from './support/sample-usage.ts';
import { newKeyId, openRedisUsage, usageOver } from './support/usage-stores.ts';

const unavailable = () => Promise.reject(new StoreUnavailable('postgres', new Error('unavailable')));
/** Postgres is away. */
const HISTORY: UsageHistory = new Proxy({} as UsageHistory, { get: () => unavailable });

let redis: Awaited<ReturnType<typeof openRedisUsage>>;
beforeAll(async () => {
  redis = await openRedisUsage(testRedisUrl());
});
afterAll(() => redis.close());

it('a replica that stops while Postgres is away has saved its usage in Redis', async () => {
  const keyId = newKeyId();
  const usage = usageOver({ live: redis.live, history: HISTORY, flushEveryMs: 3_600_000 });
  usage.recorder.record(completed({ keyId }));
  expect(await usage.stop(60_000)).toBe(true);
  expect(requestsOf(await redis.live.read([keyId]))).toBe(1);
});
