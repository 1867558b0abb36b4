import { describe, expect, it } from '@jest/globals';
import { NegativeCache } from '../../../src/keys/cache/negative-cache.ts';
import { ManualClock } from '../../support/manual-clock.ts';

describe('the negative cache', () => {
  it('remembers at most 100 000 unknown secrets, and forgets the least recently used', () => {
    const unknown = new NegativeCache(new ManualClock(0));
    for (let index = 0; index < 100_000; index += 1) unknown.add(`${index}`, 0);
    expect(unknown.has('0', 0)).toBe(true);
    unknown.add('100000', 0);
    expect(['0', '1', '2', '100000'].map((digest) => unknown.has(digest, 0))).toEqual([
      true,
      false,
      true,
      true,
    ]);
  });
});
