import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import {
  ConcurrencyLimit,
  type ConcurrencyLimitOptions,
} from '../../src/platform/concurrency/concurrency-limit.ts';

/** Runs named work, which ends when the test says so. */
function named(options: Omit<ConcurrencyLimitOptions, 'overloaded'>) {
  const limit = new ConcurrencyLimit({ ...options, overloaded: () => new Error('too much') });
  const begun = new Map<string, PromiseWithResolvers<void>>();
  const rejected: string[] = [];
  const begin = (name: string) => {
    const work = Promise.withResolvers<void>();
    begun.set(name, work);
    return work.promise;
  };
  return {
    run: (name: string, group?: string) =>
      limit.run(() => begin(name), group).catch(({ message }) => rejected.push(`${name}: ${message}`)),
    begun: () => [...begun.keys()],
    rejected,
    async end(name: string, error?: Error) {
      if (error === undefined) begun.get(name)?.resolve();
      else begun.get(name)?.reject(error);
      await nextTurn();
    },
  };
}

describe('a concurrency limit', () => {
  it('runs work up to its limit, lets more wait in its order, and takes no more', async () => {
    const { run, begun, rejected, end } = named({ maxRunning: 2, maxWaiting: 2 });
    for (const name of ['a', 'b', 'c', 'd', 'e']) void run(name);
    await nextTurn();
    expect([begun(), rejected]).toEqual([['a', 'b'], ['e: too much']]);
    await end('b');
    expect(begun()).toEqual(['a', 'b', 'c']);
    void run('f');
    await end('a');
    expect(begun()).toEqual(['a', 'b', 'c', 'd']);
    expect(rejected).toEqual(['e: too much']);
  });

  it('begins the next work also when the one before fails', async () => {
    const { run, begun, rejected, end } = named({ maxRunning: 1, maxWaiting: 1 });
    for (const name of ['a', 'b']) void run(name);
    await end('a', new Error('the store is down'));
    expect([begun(), rejected]).toEqual([['a', 'b'], ['a: the store is down']]);
    await end('b');
    void run('c');
    expect(begun()).toEqual(['a', 'b', 'c']);
  });

  it('lets groups take turns, so that a group with much work delays no other', async () => {
    const { run, begun, end } = named({ maxRunning: 1, maxWaiting: 10 });
    for (const name of ['many 1', 'many 2', 'many 3', 'many 4']) void run(name, 'many');
    void run('one', 'few');
    await end('many 1');
    await end('many 2');
    expect(begun()).toEqual(['many 1', 'many 2', 'one']);
  });

  it('leaves places in the queue for other groups', async () => {
    const { run, rejected } = named({ maxRunning: 1, maxWaiting: 3, maxWaitingPerGroup: 2 });
    for (const work of [1, 2, 3, 4]) void run(`many ${work}`, 'many');
    for (const name of ['one', 'two']) void run(name, 'few');
    await nextTurn();
    expect(rejected).toEqual(['many 4: too much', 'two: too much']);
  });
});
