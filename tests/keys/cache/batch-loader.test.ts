import { describe, expect, it } from '@jest/globals';
import { StoreUnavailable } from '../../../src/errors.ts';
import { BatchLoader } from '../../../src/keys/cache/batch-loader.ts';

describe('look-ups that share a query', () => {
  /** A store that rejects each query with one of the bad look-ups, and what it was asked. */
  function loaderFor(bad: ReadonlyMap<string, Error>) {
    const queries: (readonly string[])[] = [];
    const loader = new BatchLoader<string, string>({
      query: async (lookups) => {
        queries.push(lookups);
        const fault = lookups.find((lookup) => bad.has(lookup));
        if (fault !== undefined) throw bad.get(fault);
        return lookups.map((lookup) => `found ${lookup}`);
      },
      isPacedAfter: () => true,
    });
    return { loader, queries };
  }
  const names = Array.from({ length: 40 }, (_, number) => `key ${number}`);

  it('each have their own result when the statement fails because of some of them', async () => {
    const faults = new Map([
      ['key 20', new Error('a value that has no cast')],
      ['key 38', new Error('another one')],
    ]);
    const { loader, queries } = loaderFor(faults);
    const settled = await Promise.allSettled(names.map((name) => loader.read(name)));
    for (const [index, name] of names.entries()) {
      const reason = faults.get(name);
      expect(settled[index]).toEqual(
        reason === undefined
          ? { status: 'fulfilled', value: `found ${name}` }
          : { status: 'rejected', reason },
      );
    }
    // The others share a query, which is halved down to the two at fault.
    expect(queries.length).toBeLessThan(30);
  });

  it('fail together when the store is unavailable, without further queries', async () => {
    const down = new StoreUnavailable('postgres', undefined);
    const { loader, queries } = loaderFor(new Map([['key 20', down]]));
    const settled = await Promise.allSettled(names.map((name) => loader.read(name)));
    const shared = queries.find((lookups) => lookups.length > 1) ?? [];
    const rejected = names.filter((_, index) => settled[index]?.status === 'rejected');
    expect(shared.length).toBeGreaterThan(1);
    expect(rejected).toEqual(shared);
    expect(queries.filter((lookups) => lookups.length > 1)).toHaveLength(1);
  });

  it('are not held up by one that fails: those that come later are read', async () => {
    const { loader } = loaderFor(new Map([['key 20', new Error('a fault')]]));
    await Promise.allSettled(names.map((name) => loader.read(name)));
    expect(await loader.read('later')).toBe('found later');
  });
});
