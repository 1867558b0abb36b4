import { beforeEach, describe, expect, it } from '@jest/globals';
import { Silence } from '../../src/observability/silence.ts';
import { ManualClock } from '../support/manual-clock.ts';

let clock: ManualClock;
let silence: Silence<object>;
const asked = {};

beforeEach(() => {
  clock = new ManualClock(1_800_000_000_000);
  silence = new Silence(30_000, clock);
});

describe('silence', () => {
  it('is too long once answers have been overdue for the time that is allowed, and not before', () => {
    expect(silence.overdue(asked)).toBe(false);
    clock.advance(29_999);
    expect(silence.overdue(asked)).toBe(false);
    clock.advance(1);
    expect(silence.overdue(asked)).toBe(true);
  });

  it('begins with the first answer that is overdue, however long nobody asked', () => {
    clock.advance(3_600_000);
    expect(silence.overdue(asked)).toBe(false);
  });

  it('begins anew after an answer', () => {
    silence.overdue(asked);
    clock.advance(29_999);
    silence.broken(asked);
    clock.advance(1);
    expect(silence.overdue(asked)).toBe(false);
    clock.advance(29_999);
    expect(silence.overdue(asked)).toBe(false);
    clock.advance(1);
    expect(silence.overdue(asked)).toBe(true);
  });

  it('is told once', () => {
    silence.overdue(asked);
    clock.advance(30_000);
    expect(silence.overdue(asked)).toBe(true);
    expect(silence.overdue(asked)).toBe(false);
  });

  it('is that of each who is asked', () => {
    silence.overdue(asked);
    clock.advance(30_000);
    expect(silence.overdue({})).toBe(false);
    expect(silence.overdue(asked)).toBe(true);
  });
});
