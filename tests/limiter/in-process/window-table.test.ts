import { describe, expect, it } from '@jest/globals';
import { InProcessRateLimiter } from '../../../src/limiter/in-process/in-process-rate-limiter.ts';
import { InProcessRecordVersions } from '../../../src/limiter/in-process/in-process-record-versions.ts';
import { WindowTable } from '../../../src/limiter/in-process/window-table.ts';
import { decide, quota, subject } from '../../support/limiter-stores.ts';
import { ManualClock } from '../../support/manual-clock.ts';

function setUp() {
  const clock = new ManualClock(Date.UTC(2026, 0));
  const table = new WindowTable();
  return {
    clock,
    table,
    limiter: new InProcessRateLimiter(table, clock),
    versions: new InProcessRecordVersions(table, clock),
  };
}

describe('the window table', () => {
  it('stays bounded by the keys in use, however many pass through', async () => {
    const { clock, table, limiter } = setUp();
    let largest = 0;
    for (let index = 0; index < 20_000; index += 1) {
      await decide(limiter, subject(`key_${index}`, { quota: quota(1, 'second') }));
      // 100 keys an hour: a version is kept for an hour.
      clock.advance(36_000);
      largest = Math.max(largest, table.size);
    }
    expect(largest).toBeLessThanOrEqual(300);
  });

  it('keeps the windows that are open while it sweeps', async () => {
    const { table, limiter } = setUp();
    const asked = subject('kept', { quota: quota(2, 'hour') });
    await decide(limiter, asked);
    for (let index = 0; index < 1000; index += 1) await decide(limiter, subject(`key_${index}`));
    expect(await decide(limiter, asked)).toMatchObject({ kind: 'allowed', remaining: 0 });
    expect(table.size).toBe(1001);
  });
});

describe('a version in the process', () => {
  it('expires after an hour, a mark after thirty seconds', async () => {
    const { clock, limiter, versions } = setUp();
    const copy = subject('key', { fresh: false });
    await decide(limiter, subject('key'));
    clock.advance(3_599_999);
    expect((await decide(limiter, copy)).kind).toBe('allowed');
    clock.advance(1);
    expect((await decide(limiter, copy)).kind).toBe('stale');

    await versions.markStale(['key']);
    clock.advance(29_999);
    await decide(limiter, subject('key'));
    expect((await decide(limiter, copy)).kind).toBe('stale');
    clock.advance(1);
    await decide(limiter, subject('key'));
    expect((await decide(limiter, copy)).kind).toBe('allowed');
  });
});
