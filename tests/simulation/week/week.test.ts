import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { sampleKey, storeKeys } from '../../support/sample-records.ts';
import { KEPT_DAYS, type Kept, playWeek, readKept, WEEK_BEGINS_MS } from './play-week.ts';
import { openWeekStores, type WeekStores } from './week-stores.ts';
import type { WeekTraffic } from './week-traffic.ts';

const HOUR_MS = 3_600_000;

let stores: WeekStores;
let traffic: WeekTraffic;
/** Before January was too old, and at the end. */
let before: Kept;
let kept: Kept;

beforeAll(async () => {
  stores = await openWeekStores();
  const keys = Array.from({ length: 12 }, () => sampleKey());
  await storeKeys(stores.records, keys);
  const options = { seed: 1, keyIds: keys.map(({ id }) => id), requestsPerHour: 20, moveEvery: 12 };
  traffic = await playWeek(stores, options, async ({ truth }) => {
    before = await readKept(stores);
    expect(before.byHour).toEqual(truth.byHour);
  });
  kept = await readKept(stores);
});
afterAll(() => stores?.close());

it('usage of a week of faults equals what was sent, to the request, by key and hour', () => {
  expect(traffic.truth.requests).toBeGreaterThan(3000);
  expect(kept.byKey).toEqual(traffic.truth.byKey);
  const february = (WEEK_BEGINS_MS + 4 * 24 * HOUR_MS) / HOUR_MS;
  const sent = [...traffic.truth.byHour].filter(([name]) => Number(name.split(' ')[1]) >= february);
  expect(kept.byHour).toEqual(new Map(sent));
});

it('months get their partitions, and those past the retention are dropped', () => {
  expect(before.months).toEqual(['2025_01', '2025_02', '2025_03']);
  expect(kept.months).toEqual(['2025_02', '2025_03']);
  expect(KEPT_DAYS).toBe(3);
});
