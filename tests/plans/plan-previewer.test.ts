import { expect, it } from '@jest/globals';
import type { Plan } from '../../src/plans/plan.ts';
import type { PlanPreview } from '../../src/plans/preview/plan-preview.ts';
import { PlanPreviewer } from '../../src/plans/preview/plan-previewer.ts';
import { systemClock } from '../../src/platform/clock.ts';

const PLAN = { description: '', limit: 1, period: 'hour', additionalLimits: [], costs: [] };
const NOTHING: PlanPreview = {
  totals: { requests: 0, wasLimited: 0, wouldBeLimited: 0 },
  ...{ keys: 0, keysWereLimited: 0, keysWouldBeLimited: 0, byLimit: [0], worst: [] },
};

/** A previewer whose reads end when the test says so, and the tags of those that have begun. */
function slowPreviewer() {
  const reads: PromiseWithResolvers<PlanPreview>[] = [];
  const begun: string[] = [];
  const previewer = new PlanPreviewer({
    plans: { get: async () => PLAN as unknown as Plan },
    previews: {
      read: ({ onlyTags }) => {
        const read = Promise.withResolvers<PlanPreview>();
        reads.push(read);
        begun.push(...onlyTags);
        return read.promise;
      },
    },
    ...{ defaultPlanId: null, pathCase: 'sensitive', clock: systemClock },
  });
  const preview = (name: string) => previewer.preview('gold', { limit: 2 }, { name, onlyTags: [name] });
  return { reads, begun, preview };
}

it('Previews of plans are made one at a time, and the next one even if that failed', async () => {
  const { reads, begun, preview } = slowPreviewer();
  const [first, second] = [preview('a'), preview('b')];
  await new Promise(setImmediate);
  expect(begun).toEqual(['a']);
  reads[0]?.reject(new Error('away'));
  await expect(first).rejects.toThrow('away');
  expect(begun).toEqual(['a', 'b']);
  reads[1]?.resolve(NOTHING);
  expect(await second).toMatchObject({ keys: 0 });
});

it('An administrator with many previews keeps no other one waiting for all of them', async () => {
  const { reads, begun, preview } = slowPreviewer();
  const many = Array.from({ length: 20 }, () => preview('many').catch(({ code }) => code));
  const other = preview('other');
  const results = Promise.all([...many, other]);
  // Those beyond the first and two that wait are rejected at once.
  expect(await Promise.all(many.slice(3))).toEqual(many.slice(3).map(() => 'overloaded'));
  expect(begun).toEqual(['many']);
  for (let ended = 0; ended < 4; ended += 1) {
    reads[ended]?.resolve(NOTHING);
    await new Promise(setImmediate);
  }
  await results;
  expect(begun).toEqual(['many', 'many', 'other', 'many']);
});

it('Previews of plans wait for their turn in bounded numbers, whatever administrators want them', async () => {
  const { reads, preview } = slowPreviewer();
  const all = Array.from({ length: 12 }, (_, index) => preview(`${index}`).catch(({ code }) => code));
  expect(await Promise.all(all.slice(9))).toEqual(['overloaded', 'overloaded', 'overloaded']);
  for (let ended = 0; ended < 9; ended += 1) {
    reads[ended]?.resolve(NOTHING);
    await new Promise(setImmediate);
  }
  expect(await all[8]).toMatchObject({ keys: 0 });
});
