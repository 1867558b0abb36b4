import { describe, expect, it } from '@jest/globals';
import type { Plan } from '../../src/plans/plan.ts';
import type { PlanPreview } from '../../src/plans/preview/plan-preview.ts';
import { PlanPreviewer } from '../../src/plans/preview/plan-previewer.ts';
import { systemClock } from '../../src/platform/clock.ts';

const NOTHING: PlanPreview = {
  totals: { requests: 0, wasLimited: 0, wouldBeLimited: 0 },
  ...{ keys: 0, keysWereLimited: 0, keysWouldBeLimited: 0, byLimit: [0], worst: [] },
};

describe('A previewer', () => {
  it('makes one preview at a time, and the next one even if that failed', async () => {
    const reads: PromiseWithResolvers<PlanPreview>[] = [];
    const previewer = new PlanPreviewer({
      plans: {
        get: async () =>
          ({ description: '', limit: 1, period: 'hour', additionalLimits: [], costs: [] }) as unknown as Plan,
      },
      previews: {
        read: () => {
          const read = Promise.withResolvers<PlanPreview>();
          reads.push(read);
          return read.promise;
        },
      },
      ...{ defaultPlanId: null, pathCase: 'sensitive', clock: systemClock },
    });
    const preview = () => previewer.preview('gold', { limit: 2 }, []);
    const first = preview();
    await expect(preview()).rejects.toMatchObject({ code: 'overloaded' });
    reads[0]?.reject(new Error('away'));
    await expect(first).rejects.toThrow('away');
    const next = preview();
    await new Promise(setImmediate);
    reads[1]?.resolve(NOTHING);
    expect(await next).toMatchObject({ keys: 0 });
  });
});
