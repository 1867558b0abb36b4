import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { testRedisUrl } from '../../support/stores.ts';
import { clockedScript } from './support/clocked-script.ts';

const NOW_MS = Date.UTC(2100, 0, 31, 10, 20, 30, 456);
const DECIDED = NOW_MS - 500;
const SOON = NOW_MS + 1000;
const LATER = NOW_MS + 5000;
const MOST = 999_999_999_999_999;
const MOST_CUSTOMERS = 10_000;

let redis: Redis;
let names: Readonly<
  Record<
    'version' | 'window' | 'granted' | 'shared' | 'sharedGranted' | 'index' | 'closed' | 'operation',
    string
  >
>;
beforeAll(() => {
  redis = new Redis(testRedisUrl());
});
beforeEach(() => {
  const key = `tg:{${randomUUID()}}`;
  names = {
    version: `${key}:version`,
    window: `${key}:window:1:acme`,
    granted: `${key}:granted:1:acme`,
    shared: `${key}:window:1:__other__`,
    sharedGranted: `${key}:granted:1:__other__`,
    index: `${key}:customers`,
    closed: `${key}:closed`,
    operation: `${key}:operation:one`,
  };
});
afterAll(() => redis.disconnect());

const addUnits = clockedScript(() => redis, 'counters/addUnits-7');
const readWindows = clockedScript(() => redis, 'counters/readWindows-n');
const settleCost = clockedScript(() => redis, 'counters/settleCost-n');
const clearWindows = clockedScript(() => redis, 'counters/clearWindows-n');
const passThreshold = clockedScript(() => redis, 'counters/passThreshold-2');
const countReplicas = clockedScript(() => redis, 'decisions/countReplicas-1');

interface Units {
  readonly units?: number;
  readonly granted?: number;
  readonly channel?: string;
  readonly rememberedMs?: number;
}

function add(
  { units = 3, granted = 0, channel = '', rememberedMs = 0 }: Units,
  ofCustomer = false,
): Promise<unknown> {
  const { version, window, granted: grants, shared, sharedGranted, index, operation } = names;
  const others = ofCustomer ? [shared, sharedGranted] : [window, grants];
  const keys = [version, window, grants, ...others, index, operation];
  return addUnits(NOW_MS, keys, [units, granted, LATER, channel, 'changed', rememberedMs]);
}

/** The value of a window and its end. */
async function held(name: string): Promise<readonly [string | null, number]> {
  return [await redis.get(name), await redis.pexpiretime(name)];
}

/** Fills the index of customers up to a size with windows that are open. */
async function openWindows(size: number): Promise<void> {
  const members = Array.from({ length: size }, (_, n) => [String(LATER), `1:c${n}`]).flat();
  await redis.zadd(names.index, ...members);
}

describe('units that are added to a window', () => {
  it('open it, with the given end', async () => {
    expect(await add({ units: 3 })).toBe(0);
    expect(await held(names.window)).toEqual(['3', LATER]);
    expect(await redis.exists(names.granted, names.index, names.operation)).toBe(0);
  });

  it('are added to an open one, which keeps its end', async () => {
    await redis.set(names.window, 5, 'PXAT', SOON);
    await add({ units: 3 });
    expect(await held(names.window)).toEqual(['8', SOON]);
  });

  it('give a window the end that it lost', async () => {
    await redis.set(names.window, 5);
    await add({ units: 3 });
    expect(await held(names.window)).toEqual(['8', LATER]);
  });

  it.each([
    [MOST, 1, MOST],
    [-MOST, -1, -MOST],
  ])('to %i are at most what a window can hold', async (count, units, sum) => {
    await redis.set(names.window, count, 'PXAT', SOON);
    await add({ units });
    expect(await redis.get(names.window)).toBe(String(sum));
  });

  it.each(['-', `- ${LATER}`])('are none for a deleted key, whose version is %s', async (version) => {
    await redis.set(names.version, version);
    expect(await add({ granted: 1 })).toBe(0);
    expect(await redis.exists(names.window, names.granted)).toBe(0);
  });

  it('are added once by an operation that is remembered', async () => {
    await add({ units: 3, rememberedMs: 600_000 });
    expect(await add({ units: 3, rememberedMs: 600_000 })).toBe(0);
    expect(await redis.get(names.window)).toBe('3');
    expect(await redis.pttl(names.operation)).toBeGreaterThan(0);
    await redis.del(names.operation);
    await add({ units: 3, rememberedMs: 600_000 });
    expect(await redis.get(names.window)).toBe('6');
  });

  it('open it in place of entries of another type', async () => {
    await redis.rpush(names.window, 'a list');
    await redis.rpush(names.granted, 'a list');
    await add({ units: -3, granted: 3, rememberedMs: 1000 });
    expect([await held(names.window), await held(names.granted)]).toEqual([
      ['-3', LATER],
      ['3', LATER],
    ]);
  });

  it('are not remembered where they could not be added', async () => {
    await redis.set(names.index, 'no sorted set');
    await expect(add({ rememberedMs: 1000 }, true)).rejects.toThrow('WRONGTYPE');
    await redis.del(names.index);
    await add({ rememberedMs: 1000 }, true);
    expect(await redis.get(names.window)).toBe('3');
  });

  it('need no index for a limit of the key', async () => {
    await redis.set(names.index, 'no sorted set');
    await add({});
    expect(await redis.get(names.window)).toBe('3');
  });

  it('are noted as granted, if they are, up to what a window can hold', async () => {
    await add({ units: -3, granted: 3 });
    await add({ units: -4, granted: 4 });
    expect(await held(names.granted)).toEqual(['7', LATER]);
    await add({ granted: MOST });
    expect(await redis.get(names.granted)).toBe(String(MOST));
  });

  it('are published where a channel is named', async () => {
    const channel = randomUUID();
    const subscriber = new Redis(testRedisUrl());
    await subscriber.subscribe(channel, '');
    const message = once(subscriber, 'message');
    await add({});
    await add({ channel });
    expect(await message).toEqual([channel, 'changed']);
    subscriber.disconnect();
  });

  it.each([
    [LATER, 5000],
    [NOW_MS - 1, 0],
  ])('wait for rejections that are cached until %i', async (until, leftMs) => {
    await redis.set(names.version, `1.0 ${until}`);
    expect(await add({})).toBe(leftMs);
  });
});

describe('units that are added to a window of a customer', () => {
  it('open it below the bound, and note its end', async () => {
    await openWindows(MOST_CUSTOMERS - 1);
    await redis.pexpireat(names.index, SOON);
    await add({ units: 3 }, true);
    expect(await held(names.window)).toEqual(['3', LATER]);
    expect(await redis.zscore(names.index, '1:acme')).toBe(String(LATER));
    expect(await redis.pexpiretime(names.index)).toBe(LATER);
    expect(await redis.exists(names.shared)).toBe(0);
  });

  it('do not shorten the life of the index', async () => {
    await openWindows(1);
    await redis.pexpireat(names.index, LATER + 1);
    await add({}, true);
    expect(await redis.pexpiretime(names.index)).toBe(LATER + 1);
  });

  it('go to the window of all others beyond the bound, with what is granted', async () => {
    await openWindows(MOST_CUSTOMERS);
    await redis.set(names.shared, 5, 'PXAT', SOON);
    await add({ units: 3, granted: 1 }, true);
    expect(await held(names.shared)).toEqual(['8', SOON]);
    expect(await held(names.sharedGranted)).toEqual(['1', SOON]);
    expect(await redis.exists(names.window, names.granted)).toBe(0);
    expect(await redis.zcard(names.index)).toBe(MOST_CUSTOMERS);
  });

  it('stay in it beyond the bound while it is open', async () => {
    await openWindows(MOST_CUSTOMERS);
    await redis.set(names.window, 5, 'PXAT', SOON);
    await add({ units: 3 }, true);
    expect(await held(names.window)).toEqual(['8', SOON]);
    expect(await redis.zcard(names.index)).toBe(MOST_CUSTOMERS);
  });

  it('find room where windows have ended', async () => {
    await openWindows(MOST_CUSTOMERS);
    await redis.zadd(names.index, NOW_MS, '1:c0', NOW_MS + 1, '1:c1');
    await add({}, true);
    expect(await redis.zmscore(names.index, '1:c0', '1:c1', '1:acme')).toEqual([
      null,
      String(NOW_MS + 1),
      String(LATER),
    ]);
  });
});

describe('windows that are read', () => {
  /** The customer's window, after one of the key, and another consumer key's one. */
  async function read(): Promise<readonly number[]> {
    const { window, granted, shared, sharedGranted, index } = names;
    const ofKey = [`${window}:key`, `${granted}:key`, `${window}:key`, `${granted}:key`];
    const ofOther = ofKey.map((name) => `${name}:other`);
    const keys = [index, ...ofKey, window, granted, shared, sharedGranted, `${index}:other`, ...ofOther];
    const reply = (await readWindows(NOW_MS, keys, [2, 1])) as readonly (number | string)[];
    return reply.map(Number);
  }

  it('have their count, what is granted and their end', async () => {
    await redis.set(`${names.window}:key`, 5, 'PXAT', SOON);
    await redis.set(`${names.granted}:key`, 2, 'PXAT', SOON);
    await redis.set(names.window, 7, 'PXAT', LATER);
    await redis.set(`${names.window}:key:other`, 8, 'PXAT', LATER);
    expect(await read()).toEqual([NOW_MS, 5, 2, SOON, 7, 0, LATER, 8, 0, LATER]);
  });

  it('are empty without a count, whatever is granted, and from their end on', async () => {
    await redis.set(`${names.window}:key`, 5, 'PXAT', NOW_MS);
    await redis.set(`${names.granted}:key`, 2, 'PXAT', NOW_MS);
    await redis.set(names.granted, 2, 'PXAT', LATER);
    expect(await read()).toEqual([NOW_MS, 0, 0, -1, 0, 0, -1, 0, 0, -1]);
  });

  it('say that they have lost their end', async () => {
    await redis.set(`${names.window}:key`, 5);
    await redis.set(`${names.granted}:key`, 2);
    await redis.set(names.window, 'no count', 'PXAT', LATER);
    expect(await read()).toEqual([NOW_MS, 5, 2, -2, 0, 0, -1, 0, 0, -1]);
  });

  it('are those of all other customers beyond the bound, unless they are open', async () => {
    await openWindows(MOST_CUSTOMERS - 1);
    await redis.zadd(names.index, NOW_MS, '1:ended');
    await redis.set(names.shared, 9, 'PXAT', LATER);
    await redis.set(names.sharedGranted, 4, 'PXAT', LATER);
    expect((await read()).slice(4, 7)).toEqual([0, 0, -1]);
    await openWindows(MOST_CUSTOMERS);
    expect((await read()).slice(4, 7)).toEqual([9, 4, LATER]);
    await redis.set(names.window, 7, 'PXAT', LATER);
    expect((await read()).slice(4, 7)).toEqual([7, 0, LATER]);
  });
});

describe('a cost that is known after the response', () => {
  it('is settled in the windows that counted the request, and in no later ones', async () => {
    await redis.set(names.window, 5, 'PXAT', SOON);
    await redis.set(names.shared, 5, 'PXAT', LATER);
    const keys = [names.version, names.closed, names.window, names.shared, names.granted];
    expect(await settleCost(NOW_MS, keys, [-2, DECIDED, SOON, SOON, SOON])).toEqual([NOW_MS, 3, null, null]);
    expect([await held(names.window), await held(names.shared)]).toEqual([
      ['3', SOON],
      ['5', LATER],
    ]);
    expect(await redis.exists(names.granted)).toBe(0);
  });

  it('is settled once beside entries that are no counts', async () => {
    await redis.set(names.window, 5, 'PXAT', SOON);
    await redis.set(names.shared, '1.5', 'PXAT', SOON);
    await redis.rpush(names.granted, 'a list');
    await redis.pexpireat(names.granted, SOON);
    const keys = [names.version, names.closed, names.window, names.shared, names.granted];
    expect(await settleCost(NOW_MS, keys, [2, DECIDED, SOON, SOON, SOON])).toEqual([NOW_MS, 7, null, null]);
  });

  it.each([
    ['is settled in a window that another server of a cluster ends a little later', { laterMs: 999 }, '7'],
    ['is settled in it after an earlier reset', { laterMs: 999, closed: DECIDED - 1 }, '7'],
    ['is not settled in the next window of one second', { laterMs: 1000 }, '5'],
    ['is not settled in one that opened after a reset', { laterMs: 1, closed: DECIDED }, '5'],
    ['is settled in one that a reset left open', { laterMs: 0, closed: DECIDED }, '7'],
  ])('%s', async (_, { laterMs, closed }: { laterMs: number; closed?: number }, expected) => {
    await redis.set(names.window, 5, 'PXAT', SOON + laterMs);
    if (closed !== undefined) await redis.set(names.closed, closed);
    await settleCost(NOW_MS, [names.version, names.closed, names.window], [2, DECIDED, SOON]);
    expect(await redis.get(names.window)).toBe(expected);
  });

  it.each(['-', `- ${LATER}`])('is not settled for a deleted key, whose version is %s', async (version) => {
    await redis.set(names.version, version);
    await redis.set(names.window, 5, 'PXAT', SOON);
    const keys = [names.version, names.closed, names.window];
    expect(await settleCost(NOW_MS, keys, [2, DECIDED, SOON])).toEqual([NOW_MS, null]);
    expect(await redis.get(names.window)).toBe('5');
  });
});

describe('windows that are closed', () => {
  it('are removed with what is granted in them, and that is published', async () => {
    const channel = randomUUID();
    const subscriber = new Redis(testRedisUrl());
    await subscriber.subscribe(channel);
    const message = once(subscriber, 'message');
    await redis.set(names.version, `1.0 ${LATER}`);
    await redis.mset(names.window, 5, names.granted, 2, names.shared, 1);
    await redis.zadd(names.index, LATER, '1:acme', LATER, '1:other');
    const keys = [names.version, names.index, names.closed, names.window, names.granted];
    expect(await clearWindows(NOW_MS, keys, [channel, 'cleared', '1:acme'])).toBe(5000);
    expect(await redis.exists(names.window, names.granted)).toBe(0);
    expect(await redis.get(names.shared)).toBe('1');
    expect(await redis.zrange(names.index, '0', '-1')).toEqual(['1:other']);
    expect(await message).toEqual([channel, 'cleared']);
    subscriber.disconnect();
  });

  it.each([
    ['1.0', 0],
    [`1.0 ${NOW_MS - 1}`, 0],
    [undefined, 0],
  ])('wait for no rejections where the version is %s', async (version, leftMs) => {
    if (version !== undefined) await redis.set(names.version, version);
    await redis.zadd(names.index, LATER, '1:acme');
    const keys = [names.version, names.index, names.closed, names.window];
    expect(await clearWindows(NOW_MS, keys, [names.version, 'x'])).toBe(leftMs);
    expect(await redis.zcard(names.index)).toBe(1);
  });

  it('leave the instant until a second after all that were closed would have ended', async () => {
    const clear = (...windows: readonly string[]) =>
      clearWindows(NOW_MS, [names.version, names.index, names.closed, ...windows], [names.version, 'x']);
    await redis.set(names.window, 5, 'PXAT', SOON);
    await redis.set(names.shared, 5, 'PXAT', LATER);
    await clear(names.window, names.shared, names.granted);
    expect(await held(names.closed)).toEqual([String(NOW_MS), LATER + 1000]);
    await redis.set(names.closed, DECIDED, 'KEEPTTL');
    await clear(names.window);
    expect(await held(names.closed)).toEqual([String(DECIDED), LATER + 1000]);
    await redis.set(names.window, 5, 'PXAT', SOON);
    await clear(names.window);
    expect(await held(names.closed)).toEqual([String(NOW_MS), LATER + 1000]);
  });
});

describe('a Redis server that has no memory left', () => {
  let full: RedisServer;
  let direct: Redis;
  beforeAll(async () => {
    full = await startRedisServer();
    direct = new Redis(full.url);
  });
  afterAll(async () => {
    direct?.disconnect();
    await full?.stop();
  });

  it('closes windows, which frees some', async () => {
    await direct.set(names.window, 5, 'PXAT', SOON);
    await direct.config('SET', 'maxmemory', '1');
    await expect(direct.set(names.shared, 5)).rejects.toThrow('OOM');
    const clear = clockedScript(() => direct, 'counters/clearWindows-n');
    const keys = [names.version, names.index, names.closed, names.window, names.granted];
    expect(await clear(NOW_MS, keys, [names.version, 'x'])).toBe(0);
    expect(await direct.exists(names.window)).toBe(0);
    expect(await direct.get(names.closed)).toBe(String(NOW_MS));
  });
});

describe('the thresholds that a window has passed', () => {
  it('are known until it ends', async () => {
    const pass = (threshold: number) =>
      passThreshold(NOW_MS, [names.granted, names.index], [threshold, 10, SOON]);
    expect([await pass(80), await pass(80), await pass(100)]).toEqual([1, 0, 1]);
    expect(await redis.pexpiretime(names.index)).toBe(SOON);
  });
});

describe('the live replicas', () => {
  it('have a heartbeat that is neither older than the bound nor further ahead', async () => {
    const [bound, key] = [600_000, names.index];
    await redis.zadd(key, NOW_MS - bound - 1, 'gone', NOW_MS - bound, 'live');
    await redis.zadd(key, NOW_MS + bound, 'ahead', NOW_MS + bound + 1, 'forged', '+inf', 'never');
    expect(await countReplicas(NOW_MS, [key], ['this', bound])).toBe(3);
    expect(await redis.zrange(key, '0', '-1', 'WITHSCORES')).toEqual([
      'live',
      String(NOW_MS - bound),
      'this',
      String(NOW_MS),
      'ahead',
      String(NOW_MS + bound),
    ]);
    expect(await redis.pttl(key)).toBeGreaterThan(0);
  });
});
