import { describe, expect, it } from '@jest/globals';
import { OutageHistory } from '../../src/platform/outage-history.ts';
import { ManualClock } from '../support/manual-clock.ts';

const START_MS = Date.UTC(2026, 0, 1);

function log() {
  const clock = new ManualClock(START_MS);
  const outages = new OutageHistory(clock, 4500);
  /** Each as seconds after the start. */
  const shown = () =>
    outages.outages.map(({ fromMs, toMs }) => [(fromMs - START_MS) / 1000, (toMs - START_MS) / 1000]);
  return { clock, outages, shown };
}

describe('a log of outages', () => {
  it('has none while there are responses', () => {
    const { clock, outages, shown } = log();
    for (let beat = 0; beat < 10; beat += 1) {
      clock.advance(2000);
      outages.noteResponse(clock.monotonicMs());
    }
    clock.advance(4500);
    expect(shown()).toEqual([]);
  });

  it('has one since the last response after a failure, and after a long silence', () => {
    const { clock, outages, shown } = log();
    outages.noteResponse(clock.monotonicMs());
    clock.advance(2000);
    outages.noteFailure();
    expect(shown()).toEqual([[0, 2]]);
    clock.advance(1000);
    outages.noteResponse(clock.monotonicMs());
    expect(shown()).toEqual([[0, 3]]);
    clock.advance(4501);
    expect(shown()).toEqual([
      [0, 3],
      [3, 7.501],
    ]);
  });

  it('counts a response from when its call was sent: what came later is not known', () => {
    const { clock, outages, shown } = log();
    const sentAt = clock.monotonicMs();
    clock.advance(3000);
    outages.noteResponse(sentAt);
    outages.noteFailure();
    expect(shown()).toEqual([[0, 3]]);
  });

  it('has none because the wall clock was ahead for a moment', () => {
    const { clock, outages, shown } = log();
    for (const aheadMs of [0, 86_400_000, -86_400_000, 0]) {
      clock.setWallClockAhead(aheadMs);
      expect(shown()).toEqual([]);
      clock.advance(2000);
      outages.noteResponse(clock.monotonicMs());
    }
    expect(shown()).toEqual([]);
  });

  it('has an outage when it was by the wall clock as it is now', () => {
    const { clock, outages, shown } = log();
    clock.setWallClockAhead(3_600_000);
    clock.advance(1000);
    outages.noteResponse(clock.monotonicMs());
    outages.noteFailure();
    clock.advance(2000);
    clock.setWallClockAhead(-3_600_000);
    expect(shown()).toEqual([[1, 3]]);
    outages.noteResponse(clock.monotonicMs());
    clock.advance(1000);
    expect(shown()).toEqual([[1, 3]]);
  });

  it('keeps the last hundred', () => {
    const { clock, outages, shown } = log();
    for (let count = 0; count < 150; count += 1) {
      outages.noteFailure();
      clock.advance(1000);
      outages.noteResponse(clock.monotonicMs());
    }
    expect(shown().length).toBe(100);
    expect(shown().at(-1)).toEqual([149, 150]);
  });
});
