import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedisUrl } from '../../support/stores.ts';
import { clockedScript } from './support/clocked-script.ts';

const NOW_MS = Date.UTC(2100, 0, 31, 10, 20, 30, 456);
const LATER = NOW_MS + 700;
const MARKED_MS = 1_000_000;
const KEPT_MS = 3_000_000;
/** What the key had before, which is longer than all that scripts set. */
const BEFORE_MS = 9_000_000;

let redis: Redis;
beforeAll(() => {
  redis = new Redis(testRedisUrl());
});
afterAll(() => redis.disconnect());

interface State {
  readonly reply: unknown;
  readonly value: string | null;
  /** Which of the times above. */
  readonly lastsMs: number | undefined;
}

/** What a script makes of the shared version of a key. */
async function change(
  script: string,
  known: string | undefined,
  args: readonly (string | number)[],
  hasExpiry = true,
): Promise<State> {
  const key = `tg:{${randomUUID()}}:version`;
  if (known !== undefined) await redis.set(key, known, 'PX', BEFORE_MS);
  if (!hasExpiry) await redis.persist(key);
  const reply = await clockedScript(() => redis, script)(NOW_MS, [key], args);
  const [value, lastsMs] = [await redis.get(key), await redis.pttl(key)];
  await redis.del(key);
  return { reply, value, lastsMs: [0, MARKED_MS, KEPT_MS, BEFORE_MS].find((each) => lastsMs <= each) };
}

const KEPT = { lastsMs: KEPT_MS };
const MARKED = { lastsMs: MARKED_MS };
const AS_BEFORE = { lastsMs: BEFORE_MS };
const MISSING = { value: null, lastsMs: 0 };

describe('a change that begins', () => {
  it.each<readonly [string | undefined, string]>([
    [undefined, '*'],
    ['3.1', '*'],
    [`3.1 ${LATER}`, `* ${LATER}`],
    ['*', '**'],
    ['**', '**'],
    [`* ${LATER}`, `** ${LATER}`],
    ['what no version is', '*'],
  ])('makes of %s the mark %s', async (known, value) => {
    expect(await change('changes/markStale-n', known, [MARKED_MS])).toEqual({ reply: 1, value, ...MARKED });
  });

  it('leaves a deleted key as it is', async () => {
    expect(await change('changes/markStale-n', '-', [MARKED_MS])).toEqual({
      reply: 1,
      value: '-',
      ...AS_BEFORE,
    });
  });
});

describe('a change that ends', () => {
  it.each<readonly [string | undefined, State]>([
    [undefined, { reply: 0, value: '3.2', ...KEPT }],
    ['*', { reply: 0, value: '3.2', ...KEPT }],
    [`* ${LATER}`, { reply: 700, value: `3.2 ${LATER}`, ...KEPT }],
    [`* ${NOW_MS - 700}`, { reply: 0, value: `3.2 ${NOW_MS - 700}`, ...KEPT }],
    ['**', { reply: 0, value: '**', ...MARKED }],
    [`** ${LATER}`, { reply: 700, value: `** ${LATER}`, ...MARKED }],
    ['3.1', { reply: 0, value: '**', ...MARKED }],
    [`3.2 ${LATER}`, { reply: 700, value: `3.2 ${LATER}`, ...AS_BEFORE }],
    ['-', { reply: 0, value: '-', ...AS_BEFORE }],
    ['what no version is', { reply: 0, value: '**', ...MARKED }],
  ])('makes of %s what every replica then reads', async (known, state) => {
    expect(await change('changes/publishVersion-n', known, [KEPT_MS, MARKED_MS, '3.2'])).toEqual(state);
  });
});

describe('a change of several keys', () => {
  it('leaves the deleted ones as they are, gives each other its version, and waits for the last rejection', async () => {
    const keys = Array.from({ length: 4 }, () => `tg:{${randomUUID()}}:version`);
    const known = ['1.1', '-', `2.1 ${LATER}`];
    await redis.mset(known.flatMap((version, index) => [keys[index] ?? '', version]));
    const run = (name: string, args: readonly (string | number)[]) =>
      clockedScript(() => redis, `changes/${name}`)(NOW_MS, keys, args);
    expect(await run('markStale-n', [MARKED_MS])).toBe(1);
    expect(await redis.mget(keys)).toEqual(['*', '-', `* ${LATER}`, '*']);
    expect(await run('publishVersion-n', [KEPT_MS, MARKED_MS, '2.1', '3.1', '4.1', '5.1'])).toBe(700);
    expect(await redis.mget(keys)).toEqual(['2.1', '-', `4.1 ${LATER}`, '5.1']);
    await redis.del(keys);
  });
});

describe('a change that is published again', () => {
  it.each<readonly [string | undefined, string, State]>([
    [undefined, '3.2', { reply: 1, value: '3.2', ...KEPT }],
    ['3.1', '3.2', { reply: 1, value: '3.2', ...KEPT }],
    ['2.9', '3.2', { reply: 1, value: '3.2', ...KEPT }],
    [`3.1 ${LATER}`, '3.2', { reply: 1, value: `3.2 ${LATER}`, ...KEPT }],
    ['3.2', '3.2', { reply: 0, value: '3.2', ...AS_BEFORE }],
    ['3.3', '3.2', { reply: 0, value: '3.3', ...AS_BEFORE }],
    ['4.1', '3.2', { reply: 0, value: '4.1', ...AS_BEFORE }],
    ['9.1', '10.1', { reply: 1, value: '10.1', ...KEPT }],
    ['*', '3.2', { reply: 0, value: '*', ...AS_BEFORE }],
    ['**', '3.2', { reply: 0, value: '**', ...AS_BEFORE }],
    ['-', '3.2', { reply: 0, value: '-', ...AS_BEFORE }],
    ['what no version is', '3.2', { reply: 1, value: '3.2', ...KEPT }],
    [undefined, '-', { reply: 1, value: '-', ...KEPT }],
    [`3.1 ${LATER}`, '-', { reply: 1, value: '-', ...KEPT }],
    ['*', '-', { reply: 1, value: '-', ...KEPT }],
    ['-', '-', { reply: 0, value: '-', ...AS_BEFORE }],
  ])('finds %s, is %s, and never replaces what is newer', async (known, version, state) => {
    expect(await change('changes/publishNewer-1', known, [version, KEPT_MS])).toEqual(state);
  });
});

describe('a tombstone without an expiry', () => {
  it.each<readonly [string, readonly (string | number)[]]>([
    ['publishVersion-n', [KEPT_MS, MARKED_MS, '3.2']],
    ['publishNewer-1', ['3.2', KEPT_MS]],
    ['publishNewer-1', ['-', KEPT_MS]],
  ])('gets one from %s %j, and stays until then', async (script, args) => {
    expect(await change(`changes/${script}`, '-', args, false)).toEqual({ reply: 0, value: '-', ...KEPT });
  });
});

describe('a deletion', () => {
  it.each<readonly [string | undefined, number]>([
    [undefined, 0],
    ['3.1', 0],
    [`3.1 ${LATER}`, 700],
    [`3.1 ${NOW_MS - 700}`, 0],
  ])('of a key that has %s leaves a tombstone', async (known, reply) => {
    expect(await change('changes/retireKey-1', known, [KEPT_MS])).toEqual({ reply, value: '-', ...KEPT });
  });
});

describe('a version that the records contradict', () => {
  it.each<readonly [string | undefined, State]>([
    [undefined, { reply: 0, ...MISSING }],
    ['3.1', { reply: 1, ...MISSING }],
    [`3.1 ${LATER}`, { reply: 1, ...MISSING }],
    ['3.2', { reply: 0, value: '3.2', ...AS_BEFORE }],
    ['*', { reply: 0, value: '*', ...AS_BEFORE }],
  ])('is removed from %s, if it is there', async (known, state) => {
    expect(await change('changes/withdrawVersion-1', known, ['3.1'])).toEqual(state);
  });
});
