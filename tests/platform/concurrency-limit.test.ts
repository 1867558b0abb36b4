import { describe, expect, it } from '@jest/globals';
import { ConcurrencyLimit } from '../../src/platform/concurrency-limit.ts';

describe('a concurrency limit', () => {
  it('runs tasks up to its limit, lets more wait in their order, and takes no more', () => {
    const limit = new ConcurrencyLimit(2, 2);
    const ends = new Map<string, () => void>();
    const run = (name: string) => limit.run((done) => void ends.set(name, done));
    expect(['a', 'b', 'c', 'd', 'e'].map(run)).toEqual([true, true, true, true, false]);
    expect([...ends.keys()]).toEqual(['a', 'b']);
    ends.get('b')?.();
    expect([...ends.keys()]).toEqual(['a', 'b', 'c']);
    expect(run('f')).toBe(true);
    ends.get('a')?.();
    expect([...ends.keys()]).toEqual(['a', 'b', 'c', 'd']);
  });
});
