import { describe, expect, it } from '@jest/globals';
import { CostSettler } from '../../src/limiter/cost-settler.ts';
import { decide, LIMITER_STORES, newKeyId, quota, subject } from '../support/limiter-stores.ts';

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
});
