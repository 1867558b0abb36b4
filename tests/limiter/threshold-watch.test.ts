import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { DecidedWindow } from '../../src/limiter/request-limits.ts';
import { ThresholdWatch } from '../../src/limiter/threshold-watch.ts';
import type { PassedThreshold } from '../../src/limiter/window-counters.ts';
import { quota } from '../support/limiter-stores.ts';

interface Watched {
  readonly thresholds?: readonly number[];
  readonly passOnce?: () => Promise<boolean>;
}

function watchOf({ thresholds = [80, 100], passOnce = async () => true }: Watched = {}) {
  const passed: PassedThreshold[] = [];
  const seen = { lost: 0 };
  const watch = new ThresholdWatch({
    ...{ thresholds, counters: { passOnce } },
    onPassed: (one) => passed.push(one),
    onLost: () => {
      seen.lost += 1;
    },
  });
  return { watch, passed, seen };
}

function windowOf(used: number, fields: Partial<DecidedWindow> = {}): DecidedWindow {
  const limit = quota(10, 'minute');
  return { limit, quota: 10, used, resetAtMs: 99, isExceeded: false, isShared: false, ...fields };
}

const counted = (windows: readonly DecidedWindow[], units: number, mayRelease = false) => ({
  ...{ keyId: 'key_1', customerId: 'acme', windows, units, nowMs: 7, mayRelease },
});

describe('a watch of thresholds', () => {
  it('reports each threshold of a window once, however its count grows', () => {
    const limits = fc.oneof(
      fc.integer({ min: 1, max: 300 }),
      fc.integer({ min: 1, max: 999_999_999_999_999 }),
    );
    const percents = fc.uniqueArray(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 5 });
    const steps = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 });
    fc.assert(
      fc.property(limits, percents, steps, (limit, unsorted, parts) => {
        const thresholds = unsorted.toSorted((one, other) => one - other);
        const { watch, passed } = watchOf({ thresholds });
        let used = 0;
        // At last the window is full.
        for (const part of [...parts, 1]) {
          const units = Math.ceil((limit - used) * part);
          used += units;
          const windows = [windowOf(used, { quota: limit })];
          const before = passed.length;
          watch.note(counted(windows, units));
          expect(watch.isPassed(windows, units)).toBe(passed.length > before);
        }
        expect(passed.map(({ threshold }) => threshold)).toEqual(thresholds);
        for (const one of passed)
          expect(one.used).toBeGreaterThanOrEqual(Math.min(limit, (limit * one.threshold) / 100));
      }),
      { numRuns: 300 },
    );
  });

  it('reports no window that was full, is shorter than a minute, or was not counted in', () => {
    const { watch, passed } = watchOf();
    const second = quota(10, '59 seconds');
    watch.note(counted([windowOf(8, { isExceeded: true }), windowOf(8, { limit: second })], 1));
    watch.note(counted([windowOf(8)], 0));
    expect(watch.isPassed([windowOf(8, { isExceeded: true })], 1)).toBe(false);
    expect(watch.isPassed([windowOf(8)], 0)).toBe(false);
    expect(passed).toEqual([]);
    watch.note(counted([windowOf(8, { limit: quota(10, 'month') })], 1));
    expect(passed.length).toBe(1);
  });

  it('names the customer of a limit per customer, and the shared window of those beyond the bound', () => {
    const { watch, passed } = watchOf({ thresholds: [80] });
    const limit = quota(10, 'hour', { per: 'customer' });
    watch.note(counted([windowOf(8), windowOf(8, { limit }), windowOf(8, { limit, isShared: true })], 1));
    expect(passed.map(({ customerId }) => customerId)).toEqual([undefined, 'acme', '__other__']);
  });

  it('asks the store where units may be given back, and counts what it can not say', async () => {
    const results = [async () => true, async () => false, () => Promise.reject(new Error('unavailable'))];
    const { watch, passed, seen } = watchOf({
      thresholds: [80],
      passOnce: () => results.shift()?.() ?? Promise.reject(),
    });
    for (let each = 0; each < 3; each += 1) watch.note(counted([windowOf(8)], 1, true));
    await watch.stop();
    expect([passed.length, seen.lost]).toEqual([1, 1]);
  });
});
