import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { PostgresSeriesStore } from '../../src/storage/postgres/usage/postgres-series-store.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import type { Grouping, SeriesCounts, SeriesRow } from '../../src/usage/series/series-store.ts';
import type { Interval } from '../../src/usage/series/time-buckets.ts';
import { TimeZone } from '../../src/usage/series/time-zone.ts';
import { type SeriesPage, type SeriesRequest, UsageSeries } from '../../src/usage/series/usage-series.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { RECORD_STORES, type TestRecords } from '../support/records.ts';
import { storeUsage, type UsageEvents, usageEvents } from '../usage/support/usage-events.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = Date.UTC(2026, 3, 20, 9, 30);
const RETENTION_DAYS = 40;
/** Hours before this instant are gone. */
const HOURS_SINCE_MS = Math.ceil((NOW_MS - RETENTION_DAYS * DAY_MS) / DAY_MS) * DAY_MS;
const FIRST_MS = NOW_MS - 60 * DAY_MS;

const KEYS = Array.from({ length: 6 }, (_, index) => `key_${'0'.repeat(25)}${index}`);
const PLANS = ['default', 'gold', ''];
const ENDPOINTS = ['/v1/a', '/v1/{id}', '__other__', '=cmd()', '/é', '/\u{1f680}', '/zz'];
const CUSTOMERS = ['anonymous', 'acme', '__other__', 'a,"b"', '-1'];

const events: readonly UsageEvents[] = fc.sample(
  fc
    .record({
      keyId: fc.constantFrom(...KEYS),
      planId: fc.constantFrom(...PLANS),
      endpoint: fc.constantFrom(...ENDPOINTS),
      customerId: fc.constantFrom(...CUSTOMERS),
      hourMs: fc
        .integer({ min: Math.floor(FIRST_MS / HOUR_MS), max: Math.floor(NOW_MS / HOUR_MS) })
        .map((hour) => hour * HOUR_MS),
      requests: fc.integer({ min: 1, max: 1_000_000_000_000 }),
      parts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 }),
      forwardedUs: fc.nat(1_000_000_000),
    })
    .map(({ parts, ...rest }) => {
      const [
        successful = 0,
        forwarded = 0,
        rateLimited = 0,
        clientErrors = 0,
        serverErrors = 0,
        shadowLimited = 0,
      ] = parts.map((part) => Math.floor(part * rest.requests));
      return { ...rest, successful, forwarded, rateLimited, clientErrors, serverErrors, shadowLimited };
    }),
  { numRuns: 1200, seed: 20260420 },
);

/** What the row of a group and a bucket must be, in the order of the rows. Slow, and easy to believe. */
function modelRows(request: SeriesRequest): readonly SeriesRow[] {
  const { groupBy, interval, zone } = request;
  const counted = events.filter((event) => isCounted(event, request));
  const groupOf = (event: UsageEvents) => groupBy.map((grouping) => event[FIELDS[grouping]]);
  const largest = largestGroups(counted, groupOf, request);
  const rows = new Map<string, SeriesRow>();
  for (const event of counted) {
    const own = groupOf(event);
    const group =
      largest === undefined || largest.has(JSON.stringify(own)) ? own : own.map(() => '__other__');
    const startMs = bucketStart(event.hourMs, interval, zone, spanOf(request).fromMs);
    const id = JSON.stringify([startMs, group]);
    const row = rows.get(id);
    rows.set(id, { startMs, group, counts: added(row?.counts, event) });
  }
  return [...rows.values()].toSorted((a, b) => a.startMs - b.startMs || compareGroups(a.group, b.group));
}

function added(counts: SeriesCounts | undefined, event: UsageEvents): SeriesCounts {
  return {
    requests: (counts?.requests ?? 0) + event.requests,
    successful: (counts?.successful ?? 0) + event.successful,
    forwarded: (counts?.forwarded ?? 0) + event.forwarded,
    forwardedUs: (counts?.forwardedUs ?? 0) + event.forwardedUs,
    rateLimited: (counts?.rateLimited ?? 0) + event.rateLimited,
    clientErrors: (counts?.clientErrors ?? 0) + event.clientErrors,
    serverErrors: (counts?.serverErrors ?? 0) + event.serverErrors,
    shadowLimited: (counts?.shadowLimited ?? 0) + event.shadowLimited,
  };
}

const FIELDS = { key: 'keyId', rateLimit: 'planId', endpoint: 'endpoint', customer: 'customerId' } as const;

function isCounted(event: UsageEvents, request: SeriesRequest): boolean {
  const { fromMs, toMs } = spanOf(request);
  const { keyId = event.keyId, planId = event.planId } = request.filter;
  // Where only days are left of a key, its hours can't be told apart any more.
  const isKept = isByDay(request) || !isOfKeys(request) || event.hourMs >= HOURS_SINCE_MS;
  return (
    event.hourMs >= fromMs &&
    event.hourMs < toMs &&
    keyId === event.keyId &&
    planId === event.planId &&
    isKept
  );
}

function isOfKeys({ groupBy, filter }: SeriesRequest): boolean {
  return groupBy.includes('key') || filter.keyId !== undefined;
}

function isByDay({ groupBy, interval, zone }: SeriesRequest): boolean {
  const isNamed = groupBy.includes('endpoint') || groupBy.includes('customer');
  return isNamed || interval === 'total' || (interval !== 'hour' && zone.name === 'UTC');
}

/** Rounded outwards: to hours, or to days where days are all that is kept. */
function spanOf(request: SeriesRequest): { fromMs: number; toMs: number } {
  const isNamed = request.groupBy.includes('endpoint') || request.groupBy.includes('customer');
  const unit = (ms: number) =>
    isNamed || (isOfKeys(request) && isByDay(request) && ms < HOURS_SINCE_MS) ? DAY_MS : HOUR_MS;
  const { fromMs, toMs } = request.span;
  return {
    fromMs: Math.floor(fromMs / unit(fromMs)) * unit(fromMs),
    toMs: Math.ceil(toMs / unit(toMs)) * unit(toMs),
  };
}

function largestGroups(
  counted: readonly UsageEvents[],
  groupOf: (event: UsageEvents) => readonly string[],
  { top, groupBy }: SeriesRequest,
): ReadonlySet<string> | undefined {
  if (top === undefined) return undefined;
  const requests = new Map<string, number>();
  for (const event of counted) {
    const id = JSON.stringify(groupOf(event));
    requests.set(id, (requests.get(id) ?? 0) + event.requests);
  }
  const ranked = [...requests]
    .filter(([id]) => groupBy.length === 2 || id !== '["__other__"]')
    .toSorted(([a, x], [b, y]) => y - x || compareGroups(JSON.parse(a), JSON.parse(b)));
  return new Set(ranked.slice(0, top).map(([id]) => id));
}

const knownStarts = new Map<string, number>();
function bucketStart(hourMs: number, interval: Interval, zone: TimeZone, fromMs: number): number {
  const id = `${hourMs} ${interval} ${zone.name} ${interval === 'total' ? fromMs : ''}`;
  const start = knownStarts.get(id) ?? findBucketStart(hourMs, interval, zone, fromMs);
  knownStarts.set(id, start);
  return start;
}

/** An hour belongs to the local day or month in which it begins. Looked for by quarters of hours. */
function findBucketStart(hourMs: number, interval: Interval, zone: TimeZone, fromMs: number): number {
  if (interval === 'total') return fromMs;
  if (interval === 'hour') return hourMs;
  const dateOf = (ms: number) => localDate(ms, zone.name).slice(0, interval === 'day' ? 10 : 7);
  let start = hourMs;
  while (dateOf(start - HOUR_MS / 4) === dateOf(hourMs)) start -= HOUR_MS / 4;
  return start;
}

/** A month is walked through from each of its hours: each instant is formatted once. */
const dates = new Map<string, Map<number, string>>();
const formats = new Map<string, Intl.DateTimeFormat>();
function localDate(ms: number, timeZone: string): string {
  const known = dates.get(timeZone) ?? new Map<number, string>();
  dates.set(timeZone, known);
  const options = { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' } as const;
  const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('en-CA', options);
  formats.set(timeZone, format);
  const date = known.get(ms) ?? format.format(ms);
  known.set(ms, date);
  return date;
}

function compareGroups(a: readonly string[], b: readonly string[]): number {
  for (const [index, name] of a.entries()) {
    const order = Buffer.compare(Buffer.from(name), Buffer.from(b[index] ?? ''));
    if (order !== 0) return order;
  }
  return 0;
}

const BY_HOURS: readonly (readonly Grouping[])[] = [
  [],
  ['key'],
  ['rateLimit'],
  ['key', 'rateLimit'],
  ['rateLimit', 'key'],
];
const BY_DAYS: readonly (readonly Grouping[])[] = [
  ...[['endpoint'], ['customer'], ['key', 'endpoint'], ['endpoint', 'key'], ['customer', 'rateLimit']],
] as const as readonly (readonly Grouping[])[];
const UTC = new TimeZone('UTC');
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'Asia/Kolkata',
  'Asia/Beirut',
  'America/New_York',
  'Pacific/Chatham',
].map((name) => new TimeZone(name));

const span = fc
  .tuple(fc.integer({ min: FIRST_MS - DAY_MS, max: NOW_MS }), fc.integer({ min: 1, max: 70 * DAY_MS }))
  .map(([fromMs, length]) => ({ fromMs, toMs: fromMs + length }));
const filter = fc.record(
  { keyId: fc.constantFrom(...KEYS), planId: fc.constantFrom('default', 'gold', 'none') },
  { requiredKeys: [] },
);
const top = fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined });
const request: fc.Arbitrary<SeriesRequest> = fc
  .oneof(
    fc.record({
      groupBy: fc.constantFrom(...BY_HOURS),
      interval: fc.constantFrom<Interval>('hour', 'day', 'month', 'total'),
      zone: fc.constantFrom(...ZONES),
    }),
    fc.record({
      groupBy: fc.constantFrom(...BY_DAYS),
      interval: fc.constantFrom<Interval>('day', 'month', 'total'),
      zone: fc.constant(UTC),
    }),
  )
  .chain((shape) =>
    fc.record({ span, filter, top }).map((rest) => ({
      ...shape,
      ...rest,
      top: shape.groupBy.length === 0 ? undefined : rest.top,
    })),
  );

function seriesOf(store: TestRecords, retentionDays: number): UsageSeries {
  return new UsageSeries({
    store: new PostgresSeriesStore(store.records.db),
    clock: new ManualClock(NOW_MS),
    retentionDays,
    dailyRetentionDays: 60,
    pending: { read: async () => [], oldestAtMs: async () => undefined, knownOldestAtMs: () => undefined },
    outages: () => [],
  });
}

/** Jest compares for its message, in many times the CPU time: only where there is something to say. */
function expectRows(rows: readonly SeriesRow[], expected: readonly SeriesRow[]): void {
  if (!isDeepStrictEqual(rows, expected)) expect(rows).toEqual(expected);
}

describe.each(RECORD_STORES)('usage over time in %s', (_name, createRecords) => {
  let store: TestRecords;
  let series: UsageSeries;
  beforeAll(async () => {
    store = await createRecords();
    const half = events.length / 2;
    await storeUsage(store.records.db, events.slice(0, half));
    // Some of these are added to rows that are there already.
    await storeUsage(store.records.db, events.slice(half), HOURS_SINCE_MS);
    series = seriesOf(store, RETENTION_DAYS);
  });
  afterEach(() => void jest.restoreAllMocks());
  afterAll(() => store?.remove());

  it('is what a model makes of the same requests, for any query', async () => {
    await fc.assert(
      fc.asyncProperty(request, async (asked) => {
        const { rows } = await series.read(asked, 10_000);
        expectRows(rows, modelRows(asked));
      }),
      { numRuns: 120 },
    );
  });

  it.each(['UTC', 'Asia/Kolkata', 'America/New_York'])(
    'ranks all keys as a model does, in %s',
    async (name) => {
      const ranking = fc
        .record({
          span,
          interval: fc.constantFrom<Interval>('hour', 'day', 'month', 'total'),
          groupBy: fc.constantFrom<readonly Grouping[]>(['key'], ['key', 'rateLimit'], ['rateLimit', 'key']),
          top: fc.integer({ min: 1, max: 5 }),
          filter: fc.constantFrom({}, { planId: 'gold' }),
        })
        .map((asked) => ({ ...asked, zone: new TimeZone(name) }));
      await fc.assert(
        fc.asyncProperty(ranking, async (asked) => {
          const { rows } = await series.read(asked, 10_000);
          expectRows(rows, modelRows(asked));
        }),
        { numRuns: 60 },
      );
    },
  );

  it('is the same page by page', async () => {
    await fc.assert(
      fc.asyncProperty(request, fc.integer({ min: 20, max: 200 }), async (asked, limit) => {
        const whole = await series.read(asked, 10_000);
        const rows: SeriesRow[] = [];
        let page = await series.read(asked, limit);
        rows.push(...page.rows);
        while (page.next !== undefined) {
          expect(page.rows).toHaveLength(limit);
          page = await series.read(asked, limit, page.next);
          rows.push(...page.rows);
        }
        expectRows(rows, whole.rows);
      }),
      { numRuns: 15 },
    );
  });

  it('sums to the same totals however it is cut into spans and buckets', async () => {
    const whole = { fromMs: FIRST_MS + 25 * DAY_MS, toMs: NOW_MS };
    const total = async (asked: SeriesRequest) => {
      const { rows } = await series.read(asked, 10_000);
      return rows.reduce((sum, { counts }) => sum + counts.requests, 0);
    };
    const asked = {
      span: whole,
      interval: 'total',
      zone: UTC,
      groupBy: [],
      filter: {},
      top: undefined,
    } as const;
    const expected = await total(asked);
    expect(expected).toBeGreaterThan(0);
    for (const interval of ['hour', 'day', 'month'] as const) {
      for (const zone of ZONES) expect(await total({ ...asked, interval, zone })).toBe(expected);
    }
    const middleMs = Date.UTC(2026, 3, 1);
    const first = await total({ ...asked, span: { ...whole, toMs: middleMs } });
    const second = await total({ ...asked, span: { ...whole, fromMs: middleMs } });
    expect(first + second).toBe(expected);
  });

  it.each(ZONES)('sums keys to the total of all, beyond the kept hours, in $name', async (zone) => {
    const span = { fromMs: zone.startOf(Date.UTC(2026, 1, 25)), toMs: NOW_MS };
    const asked = { span, interval: 'total', zone, groupBy: [], filter: {}, top: undefined } as const;
    const byKey = await series.read({ ...asked, groupBy: ['key'], top: 2 }, 10);
    const whole = await series.read({ ...asked, span: byKey.span }, 10);
    const requests = ({ rows }: SeriesPage) => rows.reduce((sum, { counts }) => sum + counts.requests, 0);
    // The first day is a whole one of UTC.
    expect(byKey.span.fromMs).toBe(Math.floor(span.fromMs / DAY_MS) * DAY_MS);
    expect(requests(byKey)).toBe(requests(whole));
  });

  it.each([
    ['Africa/Casablanca', 'day', '1999-01-01', '2026-05-01'],
    ['Africa/Casablanca', 'month', '1970-01-01', '2800-01-01'],
    ['Africa/Casablanca', 'day', '1999-01-01', '2001-01-01'],
    ['UTC', 'day', '1999-01-01', '2001-01-01'],
    ['UTC', 'total', '1999-01-01', '2800-01-01'],
  ] as const)(
    'computes only dates that can have rows: %s by %s, %s to %s',
    async (name, interval, from, to) => {
      const zone = new TimeZone(name);
      const span = { fromMs: zone.startOf(Date.parse(from)), toMs: zone.startOf(Date.parse(to)) };
      const asked = { span, interval, zone, groupBy: [], filter: {}, top: undefined };
      const format = jest.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts');
      const page = await series.read(asked, 10_000);
      // Some for each of the days that are kept, and of the months around them; the longest span has 10 000 buckets.
      expect(format.mock.calls.length).toBeLessThan(1000);
      expectRows(page.rows, modelRows(asked));
      expect(page.span).toEqual(span);
    },
  );

  it('sums to the same with and without keys if days are kept less long than hours', async () => {
    const kept = await createRecords();
    try {
      const { db } = kept.records;
      const [first, second] = [KEYS[0] ?? '', KEYS[1] ?? ''];
      const hourMs = NOW_MS - (NOW_MS % HOUR_MS);
      await storeUsage(db, [
        usageEvents({ keyId: first, hourMs: hourMs - 60 * DAY_MS, requests: 900 }),
        usageEvents({ keyId: second, hourMs: hourMs - 60 * DAY_MS, requests: 90 }),
        usageEvents({ keyId: first, hourMs: hourMs - 10 * DAY_MS, requests: 200 }),
      ]);
      const retention = { hoursKeptMs: 90 * DAY_MS, daysKeptMs: 30 * DAY_MS };
      await new PostgresUsageHistory(db).prune({ nowMs: NOW_MS, ...retention });
      const span = { fromMs: NOW_MS - 80 * DAY_MS, toMs: NOW_MS };
      const asked = { span, interval: 'total', zone: UTC, groupBy: [], filter: {}, top: undefined } as const;
      const byKey = { ...asked, groupBy: ['key'] } as const;
      const requests = async (request: SeriesRequest) =>
        (await seriesOf(kept, 90).read(request, 10)).rows.map(({ counts }) => counts.requests);
      expect(await requests(asked)).toEqual([1190]);
      expect(await requests(byKey)).toEqual([1100, 90]);
      expect((await requests({ ...byKey, top: 1 })).toSorted((a, b) => a - b)).toEqual([90, 1100]);
    } finally {
      await kept.remove();
    }
  });
});
