import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compactTexts, slicesOfTexts, textOf } from '../../src/storage/redis/usage/usage-text.ts';
import { NO_CAPS } from '../../src/usage/slice-table.ts';
import { endpointName } from '../../src/usage/usage-names.ts';
import type { UniformUsage } from '../../src/usage/usage-slice.ts';
import { codePoint } from '../support/code-point.ts';
import { addedUp } from './support/sample-usage.ts';

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
