import { beforeEach, describe, expect, it } from '@jest/globals';
import { Watchdog } from '../../../src/app/workers/watchdog.ts';
import { ManualClock } from '../../support/manual-clock.ts';

let clock: ManualClock;
let watchdog: Watchdog<object>;
const watched = {};

beforeEach(() => {
  clock = new ManualClock(1_800_000_000_000);
  watchdog = new Watchdog(clock);
});

describe('a watchdog', () => {
  it('expires once responses have been overdue for the timeout, and not before', () => {
    expect(watchdog.isExpired(watched)).toBe(false);
    clock.advance(29_999);
    expect(watchdog.isExpired(watched)).toBe(false);
    clock.advance(1);
    expect(watchdog.isExpired(watched)).toBe(true);
  });

  it('begins with the first overdue response, however long none was requested', () => {
    clock.advance(3_600_000);
    expect(watchdog.isExpired(watched)).toBe(false);
  });

  it('starts again after a response', () => {
    watchdog.isExpired(watched);
    clock.advance(29_999);
    watchdog.reset(watched);
    clock.advance(1);
    expect(watchdog.isExpired(watched)).toBe(false);
    clock.advance(29_999);
    expect(watchdog.isExpired(watched)).toBe(false);
    clock.advance(1);
    expect(watchdog.isExpired(watched)).toBe(true);
  });

  it('expires once', () => {
    watchdog.isExpired(watched);
    clock.advance(30_000);
    expect(watchdog.isExpired(watched)).toBe(true);
    expect(watchdog.isExpired(watched)).toBe(false);
  });

  it('watches each one by itself', () => {
    watchdog.isExpired(watched);
    clock.advance(30_000);
    expect(watchdog.isExpired({})).toBe(false);
    expect(watchdog.isExpired(watched)).toBe(true);
  });
});
