import { isDeepStrictEqual } from 'node:util';
import { readScaleConstants } from '../../../src/cli/sizing/scale-constants.ts';
import { sampleKey, storeKeys } from '../../support/sample-records.ts';
import { withPostgres } from '../../support/test-stores.ts';
import { playWeek, readKept } from './play-week.ts';
import { openWeekStores, type WeekStores } from './week-stores.ts';

const KEYS_AT_A_TIME = 10_000;

/** How large the week is. */
export interface WeekSize {
  readonly keys: number;
  readonly requests: number;
}

/** Plays the week with stores of its own and prints what came of it. Resolves with whether usage equals what was sent. */
export function runWeek(size: WeekSize): Promise<boolean> {
  return withPostgres(async () => {
    const stores = await openWeekStores();
    return playIn(stores, size).finally(() => stores.close());
  });
}

async function playIn(stores: WeekStores, { keys, requests }: WeekSize): Promise<boolean> {
  const keyIds = await makeKeys(stores, keys);
  say(`${keys} keys`);
  let wereEqual = false;
  const traffic = await playWeek(
    stores,
    {
      ...{ seed: 1, keyIds, requestsPerHour: requests / (7 * 24), moveEvery: 24 },
      onDay: (day) => say(`day ${day + 1}`),
    },
    async ({ truth }) => {
      const kept = await readKept(stores);
      wereEqual = isDeepStrictEqual(sorted(kept.byHour), sorted(truth.byHour));
      const { postgresBytesPerUsageRow: planned } = readScaleConstants();
      const bytes = Math.round(kept.usageBytes / kept.usageRows);
      say(`usage by key and hour is what was sent: ${wereEqual}; months: ${kept.months.join(', ')}`);
      say(`${kept.usageRows} rows of usage of ${bytes} bytes each; the sizing page says ${planned}`);
    },
  );
  const kept = await readKept(stores);
  const areEqual = isDeepStrictEqual(sorted(kept.byKey), sorted(traffic.truth.byKey));
  say(`usage of each key is what was sent: ${areEqual}; months: ${kept.months.join(', ')}`);
  say(`${traffic.truth.requests} requests`);
  return wereEqual && areEqual;
}

async function makeKeys({ records }: WeekStores, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const keys = Array.from({ length: Math.min(KEYS_AT_A_TIME, count - ids.length) }, () => sampleKey());
    await storeKeys(records, keys);
    for (const { id } of keys) ids.push(id);
  }
  return ids;
}

function sorted<Value>(map: ReadonlyMap<string, Value>): readonly (readonly [string, Value])[] {
  return [...map].toSorted(([one], [other]) => (one < other ? -1 : 1));
}

function say(text: string): void {
  process.stdout.write(`${(performance.now() / 1000).toFixed(0).padStart(5)} s  ${text}\n`);
}
