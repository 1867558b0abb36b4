import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { StoreUnavailable } from '../../../src/errors.ts';
import { BatchLoader } from '../../../src/keys/cache/batch-loader.ts';

afterEach(() => {
  jest.useRealTimers();
});

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
    // One after the other, and more than may run at a time.
    for (let later = 0; later < 5; later += 1)
      expect(await loader.read(`later ${later}`)).toBe(`found later ${later}`);
  });

  it('have at most four queries at a time, of at most a hundred look-ups', async () => {
    const sizes: number[] = [];
    const loader = new BatchLoader<number, string>({
      query: (lookups) => {
        sizes.push(lookups.length);
        return new Promise(() => {});
      },
      isPacedAfter: () => false,
    });
    for (let lookup = 0; lookup < 500; lookup += 1) void loader.read(lookup);
    await new Promise(setImmediate);
    expect(sizes).toEqual([1, 100, 100, 100]);
  });

  it('begin no further query within 10 ms of the last one where queries are paced', async () => {
    jest.useFakeTimers();
    const { loader, queries } = loaderFor(new Map());
    await loader.read('first');
    await loader.read('second');
    const paced = [loader.read('third'), loader.read('fourth')];
    await jest.advanceTimersByTimeAsync(9);
    expect(queries).toEqual([['first'], ['second']]);
    await jest.advanceTimersByTimeAsync(1);
    expect(await Promise.all(paced)).toEqual(['found third', 'found fourth']);
    expect(queries.slice(2)).toEqual([['third', 'fourth']]);
  });
});
