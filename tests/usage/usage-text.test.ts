import { describe, expect, it } from '@jest/globals';
import { slicesOfTexts } from '../../src/storage/redis/usage/usage-text.ts';

describe('usage as Redis keeps it', () => {
  it('counts what it knows of a line to which a later version adds numbers', () => {
    const [slice] = slicesOfTexts(['\nkkey_one\t20000\tplan\t1728000000\nh7 6 5 4 3 2 1 1 1 1 999\t480000']);
    expect(slice?.hours.get(480_000)).toMatchObject({ requests: 7, successful: 6, shadowLimited: 1 });
  });
});
