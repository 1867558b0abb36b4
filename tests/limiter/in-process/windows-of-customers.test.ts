import { describe, expect, it } from '@jest/globals';
import { InProcessRateLimiter } from '../../../src/limiter/in-process/in-process-rate-limiter.ts';
import { InProcessWindowCounters } from '../../../src/limiter/in-process/in-process-window-counters.ts';
import { WindowTable } from '../../../src/limiter/in-process/window-table.ts';
import { decide, quota, subject } from '../../support/limiter-stores.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const TENANT = quota(10, 'hour', { id: 'tenant', per: 'customer' });
const BURST = quota(10, 'minute', { id: 'burst', per: 'customer' });

function setUp() {
  const clock = new ManualClock(Date.UTC(2026, 0));
  const table = new WindowTable();
  const limiter = new InProcessRateLimiter(table, clock);
  const windowsOf = async (customerId: string, limits = [TENANT]) => {
    const decision = await decide(limiter, subject('key', { limits, customerId }));
    return 'windows' in decision ? decision.windows.map(({ isShared }) => isShared) : [];
  };
  return { clock, windowsOf, counters: new InProcessWindowCounters(table, clock) };
}

describe('windows of customers in the process', () => {
  it('count toward the bound together with those that the same request opens', async () => {
    const { windowsOf } = setUp();
    for (let index = 0; index < 9999; index += 1) await windowsOf(`customer ${index}`);
    expect(await windowsOf('one more', [TENANT, BURST])).toEqual([false, true]);
  });

  it('make room for others when they have ended', async () => {
    const { clock, windowsOf } = setUp();
    for (let index = 0; index < 10_000; index += 1) await windowsOf(`customer ${index}`);
    expect(await windowsOf('one more')).toEqual([true]);
    clock.advance(3_600_000);
    expect(await windowsOf('one more')).toEqual([false]);
  });

  it('pass a threshold, as any window does, also if they have ended since', async () => {
    const { clock, windowsOf, counters } = setUp();
    await windowsOf('acme');
    const passed = { keyId: 'key', limit: TENANT, customerId: 'acme', threshold: 80, quota: 10, used: 8 };
    const pass = () => counters.passOnce({ ...passed, atMs: clock.nowMs(), resetAtMs: clock.nowMs() });
    expect([await pass(), await pass()]).toEqual([true, false]);
    clock.advance(3_600_000);
    expect([await pass(), await pass()]).toEqual([true, true]);
  });
});
