import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { windowEndMs } from '../../../src/limiter/period.ts';
import { testRedisUrl } from '../../support/stores.ts';
import { clockedScript } from './support/clocked-script.ts';
import {
  type Decided,
  type Held,
  KEPT_MS,
  LATEST_END_MS,
  modelOf,
  NOW_MS,
  PERIODS,
  type ScriptDecision,
  type ScriptLimit,
  type Token,
  VERSION,
} from './support/decision-model.ts';

const RUNS = 400;
const FAR_MS = NOW_MS + 9_000_000_000;
const MOST_CUSTOMERS = 10_000;

let redis: Redis;
beforeAll(() => {
  redis = new Redis(testRedisUrl());
});
afterAll(() => redis.disconnect());

const SCRIPT = 'decisions/decideRequests-n';
const decideRequests = clockedScript(() => redis, SCRIPT);
/** Fails where it needs the functions for unusual decisions. */
const decideUsual = clockedScript(
  () => redis,
  SCRIPT,
  (text) => text.replace('decide = decide or makeDecide()', "error('an unusual decision')"),
);

interface Names {
  readonly version: string;
  readonly index: string;
  readonly windows: readonly string[];
  readonly shared: readonly string[];
}

function namesOf({ limits }: ScriptDecision): Names {
  const key = `tg:{${randomUUID()}}`;
  return {
    version: `${key}:version`,
    index: `${key}:customers`,
    windows: limits.map(({ token, isForCustomers }, index) =>
      isForCustomers ? `${key}:window:${index}:${token}:acme` : `${key}:window:${index}:${token}`,
    ),
    shared: limits.map(({ token }, index) => `${key}:window:${index}:${token}:__other__`),
  };
}

function wordsOf({ untilMs, isFresh, form, cost, limits }: ScriptDecision): string {
  const head = `${untilMs} ${VERSION} ${isFresh ? `!${KEPT_MS} ` : ''}`;
  if (form === 'none') return `${head}-`;
  if (form === 'single') return `${head}${limits[0]?.limit} ${limits[0]?.token}`;
  if (form === 'plain') return `${head}=${cost} ${limits.map(({ limit }) => limit).join(' ')}`;
  const list = limits.flatMap(({ isShadow, isForCustomers, limit, token }) => [
    (isShadow ? 1 : 0) + (isForCustomers ? 2 : 0),
    limit,
    token,
  ]);
  const hasCustomers = limits.some(({ isForCustomers }) => isForCustomers);
  return `${head}${hasCustomers ? '**' : '*'} ${cost} ${JSON.stringify(list)}`;
}

function keysOf(
  { form, limits }: ScriptDecision,
  { version, windows, shared, index }: Names,
): readonly string[] {
  if (form === 'none') return [version];
  const each = limits.flatMap(({ isForCustomers }, at) =>
    (isForCustomers ? [windows[at], shared[at]] : [windows[at]]).map(String),
  );
  return [version, ...each, ...(limits.some(({ isForCustomers }) => isForCustomers) ? [index] : [])];
}

async function put(name: string, held: Held | undefined): Promise<void> {
  if (held === undefined) return;
  if (held.endsAtMs === undefined) await redis.set(name, held.text);
  else await redis.set(name, held.text, 'PXAT', held.endsAtMs);
}

async function get(name: string): Promise<Held | undefined> {
  const [text, endsAtMs] = await Promise.all([redis.get(name), redis.pexpiretime(name)]);
  if (text === null) return undefined;
  if (endsAtMs < 0) return { text };
  // What is kept for a time from now on, by the clock of the server.
  return { text, endsAtMs: endsAtMs < NOW_MS / 1.5 ? KEPT_MS : endsAtMs };
}

/** Makes all decisions in one call. */
async function decideAll(
  decisions: readonly ScriptDecision[],
  script = decideRequests,
): Promise<readonly Decided[]> {
  const all = decisions.map((decision) => ({ decision, names: namesOf(decision) }));
  await Promise.all(
    all.flatMap(({ decision, names }) => [
      put(names.version, decision.version),
      ...names.windows.map((name, index) => put(name, decision.windows[index])),
    ]),
  );
  const keys = all.flatMap(({ decision, names }) => keysOf(decision, names));
  const reply = String(await script(NOW_MS, keys, decisions.map(wordsOf)));
  const replies = repliesOf(reply, decisions);
  const decided = await Promise.all(
    all.map(async ({ names }, index) => ({
      reply: replies[index] ?? '',
      version: await get(names.version),
      windows: await Promise.all(names.windows.map(get)),
    })),
  );
  await redis.unlink(...keys);
  return decided;
}

/** The reply's part for each decision, after the time. */
function repliesOf(reply: string, decisions: readonly ScriptDecision[]): readonly string[] {
  const [time, ...words] = reply.split(' ');
  expect(time).toBe(String(NOW_MS));
  const parts = decisions.map(({ limits }) => {
    const isCounted = words[0] === '1' || words[0] === '2';
    return words.splice(0, isCounted ? 2 + 2 * limits.length : 1).join(' ');
  });
  expect(words).toEqual([]);
  return parts;
}

const instants = fc.constantFrom(NOW_MS - 1, NOW_MS, NOW_MS + 1, FAR_MS);
const versions = fc.option(
  fc.record(
    {
      text: fc.oneof(
        { weight: 3, arbitrary: fc.constant(VERSION) },
        fc
          .constantFrom(NOW_MS - 5, NOW_MS + 999, NOW_MS + 1000, NOW_MS + 1100, NOW_MS + 1101, FAR_MS)
          .map((at) => `${VERSION} ${at}`),
        fc.constantFrom(
          '3.4',
          '3.6',
          '2.9',
          '4.1',
          '10.1',
          '3.10',
          '*',
          '**',
          '-',
          '- 5',
          '*',
          'x',
          `3.4 ${FAR_MS}`,
        ),
      ),
      endsAtMs: fc.constant(FAR_MS),
    },
    { requiredKeys: ['text'] },
  ),
  { nil: undefined, freq: 6 },
);
const counts = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -2, max: 6 }).map(String) },
  fc.constantFrom('junk', '1.5', '2.5'),
);
const windows = fc.option(
  fc.oneof(fc.record({ text: counts, endsAtMs: instants }), fc.record({ text: counts })),
  { nil: undefined, freq: 4 },
);
const tokens = fc.constantFrom(...(Object.keys(PERIODS) as Token[]));
const plainLimits = fc.record<ScriptLimit>({
  token: tokens,
  limit: fc.integer({ min: 1, max: 6 }),
  isShadow: fc.constant(false),
  isForCustomers: fc.constant(false),
});
const anyLimits = fc.record<ScriptLimit>({
  token: tokens,
  limit: fc.oneof(
    fc.integer({ min: 1, max: 6 }),
    fc.tuple(
      fc.integer({ min: 1, max: 6 }),
      fc.constantFrom(NOW_MS, NOW_MS + 1),
      fc.integer({ min: 1, max: 6 }),
    ),
  ),
  isShadow: fc.boolean(),
  isForCustomers: fc.boolean(),
});
const lists = { minLength: 1, maxLength: 3 };
const forms = fc.oneof(
  fc.constant({ form: 'none' as const, limits: [], cost: 1 }),
  fc.record({ form: fc.constant('single' as const), limits: fc.tuple(plainLimits), cost: fc.constant(1) }),
  fc.record({
    form: fc.constant('plain' as const),
    limits: fc.array(plainLimits, lists),
    cost: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({
    form: fc.constant('any' as const),
    limits: fc.array(anyLimits, lists),
    cost: fc.integer({ min: 0, max: 3 }),
  }),
);
const decisions: fc.Arbitrary<ScriptDecision> = fc
  .record({
    head: fc.record({
      untilMs: fc.oneof({ weight: 8, arbitrary: fc.constant(FAR_MS) }, instants),
      isFresh: fc.boolean(),
      version: versions,
    }),
    body: forms,
    windows: fc.array(windows, { minLength: 3, maxLength: 3 }),
  })
  .map(({ head, body, windows: held }) => ({ ...head, ...body, windows: held.slice(0, body.limits.length) }));

describe('a call for decisions', () => {
  it('makes each of them as the model does, and leaves what the model leaves', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(decisions, { minLength: 1, maxLength: 3 }), async (all) => {
        expect(await decideAll(all)).toEqual(all.map(modelOf));
      }),
      { numRuns: RUNS },
    );
  });

  const current = { text: VERSION, endsAtMs: FAR_MS };
  const room = { untilMs: FAR_MS, isFresh: false, cost: 1, version: current };
  const limits: readonly ScriptLimit[] = [
    { token: '3600000', limit: 3, isShadow: false, isForCustomers: false },
  ];
  it.each<readonly [string, Partial<ScriptDecision>]>([
    ['its deadline', { untilMs: NOW_MS }],
    ['a moment before its deadline', { untilMs: NOW_MS + 1 }],
    ['the end of its window', { windows: [{ text: '2', endsAtMs: NOW_MS }] }],
    ['a moment before the end of its window', { windows: [{ text: '2', endsAtMs: NOW_MS + 1 }] }],
    ['a tombstone without an expiry', { isFresh: true, version: { text: '-' } }],
    ['the latest end of a full window', { windows: [{ text: '3', endsAtMs: LATEST_END_MS }] }],
    [
      'a later end of a full window than there can be',
      { windows: [{ text: '3', endsAtMs: LATEST_END_MS + 1 }] },
    ],
    ...[999, 1000, 1001, 1100, 1101, 3_600_000].map((ms): [string, Partial<ScriptDecision>] => [
      `rejections that are noted for ${ms} ms`,
      {
        version: { ...current, text: `${VERSION} ${NOW_MS + ms}` },
        windows: [{ text: '3', endsAtMs: FAR_MS }],
      },
    ]),
  ])('makes it at %s as the model does', async (_name, change) => {
    const forms = ['single', 'plain', 'any'] as const;
    const all = forms.map((form) => ({ form, limits, windows: [undefined], ...room, ...change }));
    expect(await decideAll(all)).toEqual(all.map(modelOf));
  });

  it('needs nothing unusual for a current copy and room in every window of the key', async () => {
    const usual = fc
      .record({
        body: forms.filter(({ form }) => form === 'single' || form === 'plain'),
        held: fc.array(
          fc.option(
            fc.record({
              text: fc.integer({ min: 0, max: 2 }).map(String),
              endsAtMs: fc.constantFrom(NOW_MS + 1, FAR_MS),
            }),
            { nil: undefined },
          ),
          { minLength: 3, maxLength: 3 },
        ),
        text: fc.constantFrom(VERSION, `${VERSION} ${NOW_MS}`),
      })
      .map(({ body, held, text }): ScriptDecision => {
        const limits = body.limits.map((limit) => ({
          ...limit,
          token: '3600000' as const,
          limit: 2 + body.cost,
        }));
        return {
          ...body,
          limits,
          windows: held.slice(0, limits.length),
          version: { text, endsAtMs: FAR_MS },
          untilMs: NOW_MS + 1,
          isFresh: false,
        };
      });
    await fc.assert(
      fc.asyncProperty(fc.array(usual, { minLength: 1, maxLength: 3 }), async (all) => {
        expect(await decideAll(all, decideUsual)).toEqual(all.map(modelOf));
      }),
      { numRuns: RUNS / 4 },
    );
  });
});

describe('a window of calendar months', () => {
  it('ends as everywhere else in the gateway', async () => {
    const key = `tg:{${randomUUID()}}`;
    const names = { version: `${key}:version`, window: `${key}:window:1mo` };
    await redis.set(names.version, VERSION);
    const endOf = async (nowMs: number, months: number): Promise<number> => {
      await redis.del(names.window);
      await decideRequests(nowMs, [names.version, names.window], [`${nowMs + 1} ${VERSION} 5 ${months}mo`]);
      return redis.pexpiretime(names.window);
    };
    const opened = fc.oneof(
      fc.date({ min: new Date('2030-01-01'), max: new Date('2499-12-31'), noInvalidDate: true }).map(Number),
      // Ends of months, around leap days and centuries.
      fc
        .tuple(
          fc.constantFrom(2096, 2099, 2100, 2103, 2104, 2399, 2400, 2401),
          fc.integer({ min: 0, max: 11 }),
          fc.integer({ min: -2, max: 2 }),
        )
        .map(([year, month, day]) => Date.UTC(year, month, 1 + day, 23, 59, 59, 999)),
    );
    await fc.assert(
      fc.asyncProperty(opened, fc.integer({ min: 1, max: 12 }), async (nowMs, months) => {
        expect(await endOf(nowMs, months)).toBe(windowEndMs(nowMs, { kind: 'calendar', token: '', months }));
      }),
      // The last day of an era of 400 years.
      { numRuns: RUNS, examples: [[Date.UTC(2400, 1, 29), 1]] },
    );
  });
});

describe('limits for each customer', () => {
  const limits = (['3600000', '86400000'] as const).map(
    (token): ScriptLimit => ({ token, limit: 5, isShadow: false, isForCustomers: true }),
  );
  const decision: ScriptDecision = {
    form: 'any',
    untilMs: FAR_MS,
    isFresh: false,
    cost: 1,
    limits,
    version: { text: VERSION },
    windows: [],
  };

  /** Makes the decision with so many windows open, and gives the flags of its reply and what the index has of the customer. */
  async function decideBeside(
    open: number,
    {
      ended = 0,
      indexEndsAtMs = FAR_MS,
      windows: held = [] as readonly (Held | undefined)[],
      shared = [] as readonly Held[],
    } = {},
  ) {
    const names = namesOf(decision);
    await put(names.version, decision.version);
    for (const [index, name] of names.windows.entries()) await put(name, held[index]);
    for (const [index, name] of names.shared.entries()) await put(name, shared[index]);
    const members = Array.from({ length: open }, (_, n) => [
      String(n < ended ? NOW_MS : NOW_MS + 1),
      `other${n}`,
    ]).flat();
    if (open > 0) await redis.zadd(names.index, ...members);
    await redis.pexpireat(names.index, indexEndsAtMs);
    const keys = keysOf(decision, names);
    const reply = String(await decideRequests(NOW_MS, keys, [wordsOf(decision)])).split(' ');
    const own = names.windows.map((name) => name.split(':window:')[1] ?? '');
    const found = {
      kind: reply[1],
      flags: Number(reply[2]),
      ends: await redis.zmscore(names.index, ...own),
      size: await redis.zcard(names.index),
      indexEndsAtMs: await redis.pexpiretime(names.index),
      shared: await Promise.all(names.shared.map((name) => redis.get(name))),
    };
    await redis.unlink(...keys);
    return found;
  }
  const HOUR_END = String(NOW_MS + 3_600_000);
  const DAY_END = String(NOW_MS + 86_400_000);
  const FIRST_IS_SHARED = 65_536;
  const SECOND_IS_SHARED = 131_072;

  it('note each window with its end, and keep the index as long as the last', async () => {
    const found = await decideBeside(1, { indexEndsAtMs: NOW_MS + 1 });
    expect(found).toMatchObject({
      kind: '1',
      flags: 0,
      ends: [HOUR_END, DAY_END],
      indexEndsAtMs: Number(DAY_END),
    });
    expect((await decideBeside(1)).indexEndsAtMs).toBe(FAR_MS);
  });

  it('share one window beyond the bound, each limit by itself', async () => {
    expect(await decideBeside(MOST_CUSTOMERS - 2)).toMatchObject({ flags: 0, size: MOST_CUSTOMERS });
    expect(await decideBeside(MOST_CUSTOMERS - 1)).toMatchObject({
      flags: SECOND_IS_SHARED,
      ends: [HOUR_END, null],
      shared: [null, '1'],
    });
    expect(await decideBeside(MOST_CUSTOMERS)).toMatchObject({
      flags: FIRST_IS_SHARED + SECOND_IS_SHARED,
      ends: [null, null],
      shared: ['1', '1'],
      size: MOST_CUSTOMERS,
    });
  });

  it('are counted together with what the shared window has', async () => {
    const shared = ['3', '4'].map((text) => ({ text, endsAtMs: FAR_MS }));
    expect(await decideBeside(MOST_CUSTOMERS, { shared })).toMatchObject({ kind: '1', shared: ['4', '5'] });
    const full = ['3', '5'].map((text) => ({ text, endsAtMs: FAR_MS }));
    expect(await decideBeside(MOST_CUSTOMERS, { shared: full })).toMatchObject({
      kind: '2',
      shared: ['3', '5'],
    });
  });

  it('keep a window that is open, and find room where windows have ended', async () => {
    const windows = [{ text: '3', endsAtMs: FAR_MS }];
    expect(await decideBeside(MOST_CUSTOMERS, { windows })).toMatchObject({ flags: SECOND_IS_SHARED });
    expect(await decideBeside(MOST_CUSTOMERS, { ended: 2 })).toMatchObject({
      flags: 0,
      size: MOST_CUSTOMERS,
    });
  });

  it('count requests without a place in the shared window at once', async () => {
    const names = namesOf(decision);
    await put(names.version, decision.version);
    const keys = [names.version, ...names.shared.flatMap((name) => [name, name]), names.index];
    const reply = String(await decideRequests(NOW_MS, keys, [wordsOf(decision)]));
    expect(reply).toBe(`${NOW_MS} 1 ${FIRST_IS_SHARED + SECOND_IS_SHARED} 1 ${HOUR_END} 1 ${DAY_END}`);
    expect(await redis.exists(names.index)).toBe(0);
    await redis.unlink(...keys);
  });
});
