import { describe, expect, it } from '@jest/globals';
import { ConcurrencyLimit } from '../../src/platform/concurrency/concurrency-limit.ts';

/** Runs named tasks, which end when the test says so. */
function named(limit: ConcurrencyLimit) {
  const ends = new Map<string, () => void>();
  return {
    run: (name: string, group?: string) => limit.run((done) => void ends.set(name, done), group),
    begun: () => [...ends.keys()],
    end: (name: string) => ends.get(name)?.(),
  };
}

describe('a concurrency limit', () => {
  it('runs tasks up to its limit, lets more wait in their order, and takes no more', () => {
    const { run, begun, end } = named(new ConcurrencyLimit({ maxRunning: 2, maxWaiting: 2 }));
    expect(['a', 'b', 'c', 'd', 'e'].map((name) => run(name))).toEqual([true, true, true, true, false]);
    expect(begun()).toEqual(['a', 'b']);
    end('b');
    expect(begun()).toEqual(['a', 'b', 'c']);
    expect(run('f')).toBe(true);
    end('a');
    expect(begun()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('lets groups take turns, so that a group with many tasks delays no other', () => {
    const { run, begun, end } = named(new ConcurrencyLimit({ maxRunning: 1, maxWaiting: 10 }));
    for (const name of ['many 1', 'many 2', 'many 3', 'many 4']) run(name, 'many');
    run('one', 'few');
    end('many 1');
    end('many 2');
    expect(begun()).toEqual(['many 1', 'many 2', 'one']);
  });

  it('leaves places in the queue for other groups', () => {
    const options = { maxRunning: 1, maxWaiting: 3, maxWaitingPerGroup: 2 };
    const { run } = named(new ConcurrencyLimit(options));
    expect([1, 2, 3, 4].map((task) => run(`many ${task}`, 'many'))).toEqual([true, true, true, false]);
    expect(run('one', 'few')).toBe(true);
    expect(run('two', 'few')).toBe(false);
  });
});
