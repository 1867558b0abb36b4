import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { burst, statusOf } from '../support/burst.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { onRedis } from '../support/on-redis.ts';

let fleet: Fleet;
let urls: readonly string[];

beforeAll(async () => {
  fleet = await startFleet(3);
  urls = fleet.replicas.map((replica) => replica.url);
});
afterAll(() => fleet?.stop());

async function remaining(keyId: string): Promise<number> {
  return (await fleet.admin.detail(keyId)).usage.rateLimits.remaining;
}

describe('three replicas', () => {
  it('allow exactly the limit under 100 requests in flight', async () => {
    await fleet.admin.makePlan('exact', 250, 'hour');
    const { secret } = await fleet.admin.makeKey('exact', 'exact');
    expect(await burst(urls, { secret, requests: 700, inFlight: 100 })).toEqual({ 200: 250, 429: 450 });
    expect(fleet.backendRequests()).toBe(250);
  });

  it('are exact in three windows at once, and count a rejected request in none', async () => {
    const additionalLimits = [
      { limitId: 'day', limit: 400, period: 'day' },
      { limitId: 'short', limit: 150, period: '10 minutes' },
    ];
    const plan = { limit: 250, period: 'hour', additionalLimits };
    expect((await fleet.admin.call('PUT', '/rate-limit/three', plan)).status).toBe(201);
    const { id, secret } = await fleet.admin.makeKey('three', 'three');
    const limits = async () => (await fleet.admin.call('GET', `/consumer-api-key/${id}/limits`)).body.limits;
    const send = () => burst(urls, { secret, requests: 500, inFlight: 100 });
    const reset = (limitId: string) =>
      fleet.admin.call('POST', `/consumer-api-key/${id}/limits/reset`, { limitId });

    expect(await send()).toEqual({ 200: 150, 429: 350 });
    expect(await limits()).toMatchObject([{ used: 150 }, { used: 150 }, { used: 150 }]);
    await reset('short');
    expect(await send()).toEqual({ 200: 100, 429: 400 });
    expect(await limits()).toMatchObject([{ used: 250 }, { used: 250 }, { used: 100 }]);
    await reset('main');
    await reset('short');
    expect(await send()).toEqual({ 200: 150, 429: 350 });
    expect(await limits()).toMatchObject([{ used: 150 }, { used: 400 }, { used: 150 }]);
    await reset('short');
    expect(await send()).toEqual({ 429: 500 });
    expect(await limits()).toMatchObject([{ used: 150 }, { used: 400 }, { used: 0 }]);
  });

  it('count a window that is open over replicas, and say the same of it everywhere', async () => {
    await fleet.admin.makePlan('shared', 10, 'hour');
    const { id, secret } = await fleet.admin.makeKey('shared', 'shared');
    const responses = await Promise.all(
      urls.map((url) => fetch(url, { headers: { authorization: `Bearer ${secret}` } })),
    );
    expect(responses.map((response) => response.headers.get('x-ratelimit-remaining')).toSorted()).toEqual([
      '7',
      '8',
      '9',
    ]);
    expect(new Set(responses.map((response) => response.headers.get('x-ratelimit-reset'))).size).toBe(1);
    const { rateLimits } = (await fleet.admin.detail(id)).usage;
    expect(rateLimits).toMatchObject({ limit: 10, remaining: 7 });
    expect(Date.parse(rateLimits.resetTime) / 1000).toBe(
      Number(responses[0]?.headers.get('x-ratelimit-reset')),
    );
  });

  it('let a raised limit help at once on every replica, and keep the count', async () => {
    await fleet.admin.makePlan('raised', 5, 'hour');
    const { id, secret } = await fleet.admin.makeKey('raised', 'raised');
    expect(await burst(urls, { secret, requests: 9, inFlight: 9 })).toEqual({ 200: 5, 429: 4 });
    await fleet.admin.call('PATCH', '/rate-limit/raised', { limit: 8 });
    expect(await remaining(id)).toBe(3);
    expect(await burst(urls, { secret, requests: 9, inFlight: 9 })).toEqual({ 200: 3, 429: 6 });
  });

  it('show a window whose end in Redis is beyond all instants, and reject with one that can be', async () => {
    await fleet.admin.makePlan('endless', 2, 'hour');
    const { id, secret } = await fleet.admin.makeKey('endless', 'endless');
    expect(await burst(urls, { secret, requests: 2, inFlight: 1 })).toEqual({ 200: 2 });
    await onRedis(fleet.redisUrl, async (redis) => {
      const [window] = await redis.keys(`tg:{${id}}:window:*`);
      await redis.pexpireat(window ?? '', 9_000_000_000_000_000);
    });
    const resetTime = async () => (await fleet.admin.detail(id)).usage.rateLimits.resetTime;
    expect(await resetTime()).toBe('9999-12-31T23:59:59Z');
    const latestMs = Date.now() + 3_700_000;
    const rejected = await fetch(String(urls[0]), { headers: { authorization: `Bearer ${secret}` } });
    expect(rejected.status).toBe(429);
    const body = (await rejected.json()) as { readonly resetTime: string };
    expect(Date.parse(body.resetTime)).toBeLessThan(latestMs);
    expect(Date.parse(body.resetTime) / 1000).toBe(Number(rejected.headers.get('x-ratelimit-reset')));
    expect(await resetTime()).toBe(body.resetTime);
  });

  it('give a tombstone an expiry that has none and stands for a key which is there', async () => {
    const { id, secret } = await fleet.admin.makeKey('buried');
    await onRedis(fleet.redisUrl, (redis) => redis.set(`tg:{${id}}:version`, '-'));
    expect(await statusOf(String(urls[0]), secret)).toBe(503);
    await onRedis(fleet.redisUrl, async (redis) =>
      expect(await redis.pttl(`tg:{${id}}:version`)).toBeGreaterThan(0),
    );
  });

  it('keep count and reset when a key is bound to a plan of the same period', async () => {
    await fleet.admin.makePlan('hourly-5', 5, 'hour');
    await fleet.admin.makePlan('hourly-7', 7, '60 minutes');
    const { id, secret } = await fleet.admin.makeKey('re-bound', 'hourly-5');
    await burst(urls, { secret, requests: 5, inFlight: 3 });
    const { resetTime } = (await fleet.admin.detail(id)).usage.rateLimits;
    await fleet.admin.bind(id, 'hourly-7');
    expect((await fleet.admin.detail(id)).usage.rateLimits).toEqual({ limit: 7, remaining: 2, resetTime });
    expect(await burst(urls, { secret, requests: 6, inFlight: 3 })).toEqual({ 200: 2, 429: 4 });
  });

  it('open a new window when a key is bound to a plan of another period', async () => {
    await fleet.admin.makePlan('hourly', 3, 'hour');
    await fleet.admin.makePlan('daily', 3, 'day');
    const { id, secret } = await fleet.admin.makeKey('re-bound', 'hourly');
    expect(await burst(urls, { secret, requests: 4, inFlight: 2 })).toEqual({ 200: 3, 429: 1 });
    await fleet.admin.bind(id, 'daily');
    expect(await burst(urls, { secret, requests: 4, inFlight: 2 })).toEqual({ 200: 3, 429: 1 });
  });
});

describe('a change made on one replica', () => {
  it.each([
    ['deleting the key', 'DELETE', undefined, 401],
    ['disabling the key', 'PATCH', { enabled: false }, 401],
  ])('holds on all replicas with their next request: %s', async (_name, method, body, expected) => {
    for (let round = 0; round < 10; round++) {
      const { id, secret } = await fleet.admin.makeKey('changing');
      for (const url of urls) expect(await statusOf(url, secret)).toBe(200);
      expect((await fleet.admin.call(method, `/consumer-api-key/${id}`, body)).status).toBe(200);
      const statuses = await Promise.all(urls.map((url) => statusOf(url, secret)));
      expect(statuses).toEqual([expected, expected, expected]);
    }
  });

  it('holds on all replicas with their next request: binding another plan', async () => {
    await fleet.admin.makePlan('narrow', 1, 'day');
    for (let round = 0; round < 10; round++) {
      const { id, secret } = await fleet.admin.makeKey('changing');
      for (const url of urls) expect(await statusOf(url, secret)).toBe(200);
      await fleet.admin.bind(id, 'narrow');
      const statuses = await Promise.all(urls.map((url) => statusOf(url, secret)));
      expect(statuses.toSorted()).toEqual([200, 429, 429]);
    }
  });

  it('holds on all replicas with their next request: editing the plan of many keys', async () => {
    await fleet.admin.makePlan('edited', 100, 'hour');
    const keys = await Promise.all(
      Array.from({ length: 20 }, (_, index) => fleet.admin.makeKey(`edited ${index}`, 'edited')),
    );
    for (const { secret } of keys) for (const url of urls) await statusOf(url, secret);
    await fleet.admin.call('PATCH', '/rate-limit/edited', { limit: 4 });
    for (const { secret } of keys) {
      const statuses = await Promise.all(urls.map((url) => statusOf(url, secret)));
      expect(statuses.toSorted()).toEqual([200, 429, 429]);
    }
  });

  it('brings a disabled key back with its next request', async () => {
    const { id, secret } = await fleet.admin.makeKey('back again');
    for (let round = 0; round < 10; round++) {
      await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
      for (const url of urls) expect(await statusOf(url, secret)).toBe(401);
      await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: true });
      const statuses = await Promise.all(urls.map((url) => statusOf(url, secret)));
      expect(statuses).toEqual([200, 200, 200]);
    }
  });
});
