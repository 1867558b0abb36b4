import { describe, expect, it } from '@jest/globals';
import {
  type DecidedWindow,
  RequestCosts,
  rejectingWindow,
  tightestWindow,
} from '../../src/limiter/request-limits.ts';
import { quota } from '../support/limiter-stores.ts';

const COSTS = new RequestCosts(
  [
    { pattern: { path: '/five' }, cost: { units: 5, isReported: false } },
    { pattern: { path: '/three' }, cost: { units: 3, isReported: true } },
  ],
  'insensitive',
);

describe('the cost of a path that can be read in several ways', () => {
  it('is the highest of its readings', () => {
    expect(COSTS.costOf('GET', '/other', ['/five'])).toEqual({ units: 5, isReported: false });
    expect(COSTS.costOf('GET', '/five', ['/other'])).toEqual({ units: 5, isReported: false });
  });

  it('is reported by the backend if that of any reading is, and the higher units are kept until then', () => {
    expect(COSTS.costOf('GET', '/five', ['/three'])).toEqual({ units: 5, isReported: true });
    expect(COSTS.costOf('GET', '/three', ['/five'])).toEqual({ units: 5, isReported: true });
    expect(COSTS.costOf('GET', '/other', ['/three', '/five'])).toEqual({ units: 5, isReported: true });
  });
});

function windowOf(fields: Partial<DecidedWindow>): DecidedWindow {
  const window = { limit: quota(10, 'hour'), quota: 10, used: 0, resetAtMs: 1000 };
  return { ...window, isExceeded: false, isShared: false, ...fields };
}

describe('of several windows', () => {
  it('the tightest is the one with the least remaining, however soon it ends', () => {
    const tight = windowOf({ used: 9, resetAtMs: 10 });
    const later = windowOf({ used: 8, resetAtMs: 5000 });
    expect([tightestWindow([tight, later]), tightestWindow([later, tight])]).toEqual([tight, tight]);
  });

  it('the tightest of those with as much remaining is the one that ends last', () => {
    const early = windowOf({ quota: 5, used: 4, resetAtMs: 10 });
    const late = windowOf({ used: 9, resetAtMs: 20 });
    expect([tightestWindow([early, late]), tightestWindow([late, early])]).toEqual([late, late]);
  });

  it('the one that rejects is the last to end of those enforced and exceeded', () => {
    const early = windowOf({ isExceeded: true, resetAtMs: 10 });
    const late = windowOf({ isExceeded: true, resetAtMs: 20 });
    const open = windowOf({ resetAtMs: 30 });
    const shadow = windowOf({ limit: quota(1, 'day', { mode: 'shadow' }), isExceeded: true, resetAtMs: 40 });
    expect([
      rejectingWindow([early, late, open, shadow]),
      rejectingWindow([shadow, open, late, early]),
    ]).toEqual([late, late]);
    expect(rejectingWindow([open, shadow])).toBeUndefined();
  });
});
