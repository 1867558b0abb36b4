import { expect, it } from '@jest/globals';
import { InProcessWindowCounters } from '../../../src/limiter/in-process/in-process-window-counters.ts';
import { WindowTable } from '../../../src/limiter/in-process/window-table.ts';
import { quota } from '../../support/limiter-stores.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const DAY_MS = 86_400_000;

it('a grant in the process is given once in 24 hours, however often it is repeated', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0));
  const counters = new InProcessWindowCounters(new WindowTable(), clock);
  const limits = [quota(1, 'month')];
  const grantedNow = async () => {
    await counters.grant({ keyId: 'key', limits, customerId: '', units: 2, operationId: 'first' });
    const { counters: read } = await counters.read({ keyId: 'key', limits, customerId: '' });
    return read[0]?.granted;
  };
  expect(await grantedNow()).toBe(2);
  clock.advance(DAY_MS - 1);
  expect(await grantedNow()).toBe(2);
  clock.advance(1);
  expect([await grantedNow(), await grantedNow()]).toEqual([4, 4]);
});
