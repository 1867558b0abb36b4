import { beforeEach, describe, expect, it } from '@jest/globals';
import { KeyOrigins } from '../../../src/keys/cache/key-origins.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const PAGE = 'https://app.example.com';

describe('the origins that some key allows', () => {
  let entries: Set<string>;
  let queries: (readonly string[])[];
  let respond: () => Promise<void>;
  let clock: ManualClock;
  let origins: KeyOrigins;
  beforeEach(() => {
    [entries, queries] = [new Set([PAGE, 'https://*.example.org']), []];
    respond = async () => {};
    clock = new ManualClock(0);
    origins = new KeyOrigins({
      repository: {
        findOriginEntries: async (sought) => {
          queries.push(sought);
          await respond();
          return sought.filter((entry) => entries.has(entry));
        },
      },
      clock,
    });
  });

  function find(origin: string, client = 'a'): Promise<boolean> {
    return new Promise((resolve, reject) => {
      origins.find(origin, client, (error, isAllowed) => {
        if (error) reject(error);
        else resolve(isAllowed);
      });
    });
  }

  it('are those that a key names, or whose level it names', async () => {
    expect(await find(PAGE)).toBe(true);
    expect(await find('https://a.example.org')).toBe(true);
    expect(await find('https://other.example.com')).toBe(false);
  });

  it('are read once a second, for all requests together', async () => {
    await find(PAGE);
    await find(PAGE, 'b');
    expect(queries).toHaveLength(1);
    clock.advance(1000);
    await find(PAGE);
    expect(queries).toHaveLength(2);
  });

  it('are asked for again once a key has changed', async () => {
    await find(PAGE);
    entries.clear();
    clock.advance(1);
    origins.expire();
    expect(await find(PAGE)).toBe(false);
  });

  it('are found as soon as a key has them', async () => {
    expect(await find('https://new.example.com')).toBe(false);
    entries.add('https://new.example.com');
    expect(await find('https://new.example.com')).toBe(true);
  });

  it('cost no query for what no browser writes', async () => {
    for (const origin of ['null', 'https://APP.example.com', 'https://*.example.org', 'x'.repeat(10_000)])
      expect(await find(origin)).toBe(false);
    expect(queries).toEqual([]);
  });

  it('share a query when they wait for one, with at most a hundred of them', async () => {
    const all = Array.from({ length: 150 }, (_, n) => find(`https://p${n}.example.com`));
    await Promise.all(all);
    expect(queries.map((sought) => sought.filter((entry) => !entry.includes('*')).length)).toEqual([
      1, 100, 49,
    ]);
  });

  it('of one client wait behind at most one of each other, in bounded number', async () => {
    const order: string[] = [];
    const flood = Array.from({ length: 250 }, (_, n) =>
      find(`https://p${n}.example.com`, 'flood').then(
        () => order.push('flood'),
        ({ code }) => order.push(code),
      ),
    );
    const other = find(PAGE, 'other').then(() => order.push('other'));
    await Promise.all([...flood, other]);
    expect(order.filter((code) => code === 'overloaded')).toHaveLength(49);
    expect(order.filter((who) => who !== 'overloaded').indexOf('other')).toBeLessThanOrEqual(3);
  });

  it('that are known are allowed while the store is down; others get its error', async () => {
    await find(PAGE);
    clock.advance(60_000);
    respond = async () => {
      throw new Error('the store is down');
    };
    expect(await find(PAGE)).toBe(true);
    expect(origins.knows(PAGE)).toBe(true);
    await expect(find('https://a.example.org')).rejects.toThrow('the store is down');
    respond = async () => {};
    expect(await find('https://a.example.org')).toBe(true);
  });

  it('are asked for once where the store rejects the query', async () => {
    respond = async () => {
      throw new Error('the store rejects it');
    };
    const all = Array.from({ length: 101 }, (_, n) => find(`https://p${n}.example.com`));
    for (const { status } of await Promise.allSettled(all)) expect(status).toBe('rejected');
    expect(queries).toHaveLength(2);
  });

  it('are no longer known once no key allows them', async () => {
    await find(PAGE);
    entries.delete(PAGE);
    clock.advance(1000);
    expect([await find(PAGE), origins.knows(PAGE)]).toEqual([false, false]);
  });
});
