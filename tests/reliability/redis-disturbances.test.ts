import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { ask, type RedisFleet, startInProcessRedisFleet, untilDegraded } from './support/redis-fleet.ts';

/** Longer than any of the disturbances lasts, on a busy machine too. */
const TIMEOUT_MS = 5000;
/** How long Redis stands still. Milliseconds. */
const STANDSTILL_MS = 200;
const LIMIT = 1_000_000;
const CLIENTS = 8;
const TIMES = 8;
/** Requests between two disturbances. */
const APART = 20;

let server: RedisServer;
let direct: Redis;
let fleet: RedisFleet;
/** A key with room for the requests that find out how things stand. */
let probe: string;

beforeAll(async () => {
  server = await startRedisServer();
  direct = new Redis(server.url);
  const settings = { REDIS_URL: server.url, REDIS_TIMEOUT_MS: String(TIMEOUT_MS) };
  fleet = await startInProcessRedisFleet([settings, settings]);
  await fleet.admin.makePlan('large', LIMIT, 'day');
  await fleet.admin.makePlan('small', 100, 'day');
  probe = (await fleet.admin.makeKey('probe', 'large')).secret;
});
afterAll(async () => {
  await fleet?.stop();
  direct?.disconnect();
  await server?.stop();
});

interface ProbeResponse {
  readonly status: number;
  /** Whether Redis decided. */
  readonly isCounted: boolean;
}

/** Asks both replicas with a key, from several clients, while Redis is disturbed every so many responses, and once more when all is over. */
async function disturbed(secret: string, disturb: () => Promise<unknown>): Promise<readonly ProbeResponse[]> {
  const responses: ProbeResponse[] = [];
  const send = async (url: string): Promise<void> => {
    const { status, headers } = await ask(url, secret);
    responses.push({ status, isCounted: headers.has('x-ratelimit-remaining') });
  };
  let isOver = false;
  const client = async (number: number): Promise<void> => {
    const url = fleet.replicas[number % fleet.replicas.length]?.url ?? '';
    while (!isOver) await send(url);
  };
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(number));
  try {
    for (let time = 1; time <= TIMES; time += 1) {
      await until(() => responses.length >= time * APART);
      await disturb();
    }
  } finally {
    isOver = true;
    await Promise.all(clients);
  }
  await untilDegraded(fleet.replicas, probe, false);
  for (const { url } of fleet.replicas) await send(url);
  return responses;
}

/** Undefined while the connection for usage, which is another one than that for decisions, is not back. */
async function recorded(id: string): Promise<number | undefined> {
  return (await fleet.admin.detail(id).catch(() => undefined))?.usage.totalRequests;
}

async function counted(id: string): Promise<number> {
  return LIMIT - (await fleet.admin.detail(id)).usage.rateLimits.remaining;
}

describe('replicas under load', () => {
  it.each([
    ['forgets its scripts', () => direct.script('FLUSH')],
    [
      'stands still for less than the timeout',
      async () => {
        server.pause();
        await wait(STANDSTILL_MS);
        server.resume();
      },
    ],
    ['lets all calls wait for a while', () => direct.call('CLIENT', 'PAUSE', STANDSTILL_MS)],
  ] as const)('whose Redis %s count every request, and exactly', async (_, disturb) => {
    const { id, secret } = await fleet.admin.makeKey('exact', 'large');
    const responses = await disturbed(secret, disturb);
    expect(new Set(responses.map((response) => JSON.stringify(response)))).toEqual(
      new Set([JSON.stringify({ status: 200, isCounted: true })]),
    );
    expect(await counted(id)).toBe(responses.length);
    await until(async () => (await recorded(id)) === responses.length);

    const few = await fleet.admin.makeKey('few', 'small');
    const statuses = (await disturbed(few.secret, disturb)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(100);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
  });

  it('whose Redis ends all connections serve, record and count every request once', async () => {
    const { id, secret } = await fleet.admin.makeKey('killed', 'large');
    const responses = await disturbed(secret, () =>
      direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
    );
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    await until(async () => (await recorded(id)) === responses.length);
    // What the replicas allowed alone is given back, except for what was under way when a connection ended and may have been counted.
    const used = await counted(id);
    expect(used).toBeGreaterThanOrEqual(responses.filter(({ isCounted }) => isCounted).length);
    expect(used).toBeLessThanOrEqual(responses.length);
  });

  it('whose Redis is emptied respond to every request, and begin new windows', async () => {
    const { id, secret } = await fleet.admin.makeKey('emptied', 'large');
    const responses = await disturbed(secret, () => direct.flushall());
    expect(new Set(responses.map((response) => JSON.stringify(response)))).toEqual(
      new Set([JSON.stringify({ status: 200, isCounted: true })]),
    );
    expect(await counted(id)).toBeLessThanOrEqual(responses.length);
    // What Redis held is gone from the statistics too, but nothing is there twice.
    expect(await recorded(id)).toBeLessThanOrEqual(responses.length);
    await direct.flushall();
    await ask(fleet.replicas[0]?.url ?? '', secret);
    expect(await counted(id)).toBe(1);
  });

  it('whose Redis is emptied do not serve a key that was deleted before', async () => {
    const { id, secret } = await fleet.admin.makeKey('deleted', 'large');
    for (const { url } of fleet.replicas) expect((await ask(url, secret)).status).toBe(200);
    await fleet.admin.deleteKey(id);
    await direct.flushall();
    for (const { url } of fleet.replicas.toReversed()) expect((await ask(url, secret)).status).toBe(401);
  });
});
