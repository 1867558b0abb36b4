import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compactTexts, slicesOfTexts, textOf } from '../../src/storage/redis/usage/usage-text.ts';
import { OTHER } from '../../src/usage/cap-names.ts';
import { NO_CAPS } from '../../src/usage/slice-table.ts';
import { endpointName } from '../../src/usage/usage-names.ts';
import { HOURS_A_DAY, noCounts, type UniformUsage } from '../../src/usage/usage-slice.ts';
import { codePoint } from '../support/code-point.ts';
import { addedUp, requestsIn, requestsOf } from './support/sample-usage.ts';

const NAME = fc.string({ unit: codePoint, minLength: 1 }).map((name) => endpointName(name));
const NUMBER = fc.oneof(fc.constant(0), fc.nat(), fc.nat({ max: 2 ** 45 }));
const UNIFORM: fc.Arbitrary<UniformUsage> = fc.record({
  keyId: fc.constantFrom('key_one', 'key_two'),
  hour: fc.integer({ min: 480_000, max: 480_030 }),
  planId: fc.constantFrom('', 'gold'),
  endpoint: NAME,
  customerId: NAME,
  lastUsedAtS: fc.nat({ max: 2 ** 31 }),
  counts: fc.record({
    requests: NUMBER,
    successful: NUMBER,
    forwarded: NUMBER,
    forwardedUs: NUMBER,
    bytesIn: NUMBER,
    bytesOut: NUMBER,
    rateLimited: NUMBER,
    clientErrors: NUMBER,
    serverErrors: NUMBER,
    shadowLimited: NUMBER,
    units: NUMBER,
  }),
});

describe('usage as Redis keeps it', () => {
  it('is read as it was written, one by one, added up and compacted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(UNIFORM, { minLength: 1, maxLength: 20 }), async (recorded) => {
        const texts = recorded.map((each) => textOf([each]));
        const expected = addedUp(recorded);
        expect(slicesOfTexts(texts)).toEqual(expected);
        expect(slicesOfTexts([texts.join('')])).toEqual(expected);
        expect(slicesOfTexts([textOf(expected)])).toEqual(expected);
        expect(slicesOfTexts([await compactTexts(texts, NO_CAPS)])).toEqual(expected);
      }),
    );
  });

  it('keeps the first names of a key, day and plan within the caps, however often it is compacted', async () => {
    const caps = { endpoints: 3, customers: 5 };
    const few = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', OTHER);
    const recordedOf = fc.record({
      hour: fc.integer({ min: 480_000, max: 480_030 }),
      endpoint: few,
      customerId: few,
    });
    const all = fc.array(fc.tuple(recordedOf, fc.boolean()), { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(all, async (steps) => {
        const recorded = steps.map(([names]) => ({
          ...{ keyId: 'key_one', planId: 'gold', lastUsedAtS: 1, ...names },
          counts: { ...noCounts(), requests: 1 },
        }));
        let texts: string[] = [];
        for (const [index, each] of recorded.entries()) {
          texts.push(textOf([each]));
          if (steps[index]?.[1]) texts = [await compactTexts(texts, caps)];
        }
        const slices = slicesOfTexts([await compactTexts(texts, caps)]);
        for (const [day, ofDay] of Map.groupBy(recorded, ({ hour }) => Math.floor(hour / HOURS_A_DAY))) {
          const kept = slices.filter((slice) => slice.day === day);
          const first = (names: readonly string[], cap: number) =>
            [...new Set(names)].filter((name) => name !== OTHER).slice(0, cap);
          const endpoints = first(
            ofDay.map(({ endpoint }) => endpoint),
            caps.endpoints,
          );
          const customers = first(
            ofDay.map(({ customerId }) => customerId),
            caps.customers,
          );
          const requests = (list: 'endpoints' | 'customers', name: string) =>
            kept.reduce((sum, slice) => sum + (slice[list].get(name)?.requests ?? 0), 0);
          for (const name of endpoints)
            expect(requests('endpoints', name)).toBe(
              ofDay.filter(({ endpoint }) => endpoint === name).length,
            );
          for (const name of customers)
            expect(requests('customers', name)).toBe(ofDay.filter((each) => each.customerId === name).length);
          for (const slice of kept) {
            expect([...endpoints, OTHER]).toEqual(expect.arrayContaining([...slice.endpoints.keys()]));
            expect([...customers, OTHER]).toEqual(expect.arrayContaining([...slice.customers.keys()]));
            const total = requestsIn(slice.hours.values());
            expect(requestsIn(slice.endpoints.values())).toBe(total);
            expect(requestsIn(slice.customers.values())).toBe(total);
          }
          expect(requestsOf(kept)).toBe(ofDay.length);
        }
      }),
    );
  });

  it('has units of 1 for each allowed request in a line of a version that knows none', () => {
    const [slice] = slicesOfTexts(['\nkkey_one\t20000\tplan\t1728000000\nh7 6 5 4 3 2 1\t480000']);
    expect(slice?.hours.get(480_000)).toMatchObject({ requests: 7, rateLimited: 1, units: 6 });
  });

  it('counts what it knows of a line to which a later version adds numbers', () => {
    const [slice] = slicesOfTexts([
      '\nkkey_one\t20000\tplan\t1728000000\nh7 6 5 4 3 2 1 1 1 1 10 999\t480000',
    ]);
    expect(slice?.hours.get(480_000)).toMatchObject({
      requests: 7,
      successful: 6,
      shadowLimited: 1,
      units: 9,
    });
    const line = '\nkkey_one\t20000\tplan\t1728000000\t480000\t7 6 5 4 3 2 1 1 1 1 10 999\t/a\tc';
    expect(slicesOfTexts([line])[0]?.customers.get('c')).toMatchObject({ requests: 7, shadowLimited: 1 });
  });
});
