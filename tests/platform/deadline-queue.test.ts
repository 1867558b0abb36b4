import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { systemClock } from '../../src/platform/clock.ts';
import { DeadlineQueue, type Due } from '../../src/platform/deadline-queue.ts';

interface Item extends Due<Item> {
  readonly name: number;
}

function item(name: number, dueAtMs: number): Item {
  return { name, dueAtMs, before: undefined, after: undefined };
}

describe('deadlines', () => {
  it('calls for each item that is left when it is due, the earliest first', async () => {
    const delays = fc.array(fc.record({ inMs: fc.nat(20), isDeleted: fc.boolean() }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(delays, async (wanted) => {
        const nowMs = systemClock.monotonicMs();
        const items = wanted.map(({ inMs }, name) => item(name, nowMs + inMs));
        const left = items.filter((_, i) => wanted[i]?.isDeleted === false);
        const called: Item[] = [];
        const early: Item[] = [];
        await new Promise<void>((resolve) => {
          const deadlines = new DeadlineQueue<Item>(systemClock, (due) => {
            if (systemClock.monotonicMs() < due.dueAtMs) early.push(due);
            called.push(due);
            if (called.length === left.length) resolve();
          });
          for (const each of items) deadlines.add(each, nowMs);
          for (const each of items) if (!left.includes(each)) deadlines.delete(each);
          if (left.length === 0) resolve();
        });
        const byTime = left.toSorted((one, other) => one.dueAtMs - other.dueAtMs || one.name - other.name);
        expect(called.map(({ name }) => name)).toEqual(byTime.map(({ name }) => name));
        expect(early).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });

  it('wakes for an item that is due before all that are there already', async () => {
    const nowMs = systemClock.monotonicMs();
    const called = await new Promise<number>((resolve) => {
      const deadlines = new DeadlineQueue<Item>(systemClock, ({ name }) => resolve(name));
      deadlines.add(item(1, nowMs + 3_600_000), nowMs);
      deadlines.add(item(2, nowMs + 1), nowMs);
    });
    expect(called).toBe(2);
  });

  it('postpones each item, but to the latest time at most', () => {
    const nowMs = Math.ceil(systemClock.monotonicMs());
    const deadlines = new DeadlineQueue<Item>(systemClock, () => {});
    const [early, late] = [item(1, nowMs + 3_600_000), item(2, nowMs + 3_600_090)];
    for (const each of [early, late]) deadlines.add(each, nowMs);
    deadlines.postpone(80, nowMs + 3_600_100);
    expect([early.dueAtMs - nowMs, late.dueAtMs - nowMs]).toEqual([3_600_080, 3_600_100]);
  });

  it('takes an item again that was called for, or deleted', async () => {
    const names: number[] = [];
    await new Promise<void>((resolve) => {
      const deadlines = new DeadlineQueue<Item>(systemClock, (due) => {
        names.push(due.name);
        if (names.length === 3) resolve();
        else if (due.name === 1) deadlines.add(due, systemClock.monotonicMs());
      });
      const nowMs = systemClock.monotonicMs();
      const other = item(2, nowMs);
      deadlines.add(other, nowMs);
      deadlines.delete(other);
      deadlines.add(item(1, nowMs), nowMs);
      deadlines.add(other, nowMs);
    });
    expect(names).toEqual([1, 2, 1]);
  });
});
