import { describe, expect, it } from '@jest/globals';
import { CostSettler } from '../../src/limiter/cost-settler.ts';
import { NotCounted } from '../../src/limiter/not-counted.ts';
import { counted, decide, LIMITER_STORES, newKeyId, quota, subject } from '../support/limiter-stores.ts';
import { until } from '../support/until.ts';

describe('the settling of reported costs', () => {
  it('is over before the limiter is stopped', async () => {
    const store = await LIMITER_STORES['in the process']?.();
    if (store === undefined) throw new Error('no store');
    const gate = Promise.withResolvers<void>();
    const settler = new CostSettler({
      ...store.counters,
      settle: async (difference) => {
        await gate.promise;
        return store.counters.settle(difference);
      },
    });
    const limit = quota(100, 'hour');
    const asked = subject(newKeyId(), { quota: limit });
    const decision = await decide(store.limiters[0] as never, asked);
    if (decision.kind !== 'allowed') throw new Error('not allowed');
    settler.settle(asked, decision, '5');
    let isOver = false;
    const stopped = settler.stop().then(() => {
      isOver = true;
    });
    // All that could end without the store has ended when this was read.
    await store.counters.read({ keyId: asked.keyId, limits: [limit], customerId: '' });
    expect(isOver).toBe(false);
    gate.resolve();
    await stopped;
    const { counters } = await store.counters.read({ keyId: asked.keyId, limits: [limit], customerId: '' });
    expect(counters).toMatchObject([{ used: 5 }]);
    await store.close();
  });

  it('risks few of the differences that wait when the store does not respond', async () => {
    let [calls, atOnce] = [0, 0];
    const sent: number[] = [];
    const settler = new CostSettler({
      settle: () => {
        calls += 1;
        atOnce += 1;
        setImmediate(() => {
          if (atOnce > 0) sent.push(atOnce);
          atOnce = 0;
        });
        return Promise.reject(calls > 500 ? new Error('Command timed out') : new NotCounted('away'));
      },
    });
    for (let key = 0; key < 500; key += 1)
      settler.settle(subject(`${key}`), counted('allowed', { degraded: false }), '5');
    await until(() => settler.counts.failed === 500 && atOnce === 0);
    expect(sent).toEqual([500, 200, 200, 100]);
  });

  it('goes on beside differences that can not be sent, as those of one server of a cluster', async () => {
    const calls: string[] = [];
    const settler = new CostSettler({
      settle: async ({ keyId, windows }) => {
        calls.push(keyId);
        if (keyId !== 'back' || calls.length <= 251) throw new NotCounted('away');
        return { used: windows.map(() => 1), nowMs: 0 };
      },
    });
    const report = (keyId: string) =>
      settler.settle(subject(keyId), counted('allowed', { degraded: false }), '5');
    for (let key = 0; key < 250; key += 1) report(`away ${key}`);
    report('back');
    await until(() => settler.counts.settled === 1);
    await settler.stop();
    expect(settler.counts).toMatchObject({ settled: 1, failed: 250 });
  });
});
