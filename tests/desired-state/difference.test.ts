import { describe, expect, it } from '@jest/globals';
import { differenceBetween } from '../../src/desired-state/difference.ts';
import { SHIPPED_PLAN_ID } from '../../src/plans/plan-id.ts';
import { samplePlan } from '../support/sample-records.ts';

describe('a configuration that leaves out a plan of its owner', () => {
  const OWNER = 'team';
  const differenceWithout = (planId: string, defaultPlanId: string | null) => {
    const plan = { ...samplePlan(), id: planId, managedBy: OWNER };
    return differenceBetween(
      { plans: [], keys: [], webhooks: [] },
      { plans: [{ plan, managedDigest: null }], keys: [], webhooks: [] },
      { owner: OWNER, prune: true, defaultPlanId },
    );
  };

  it('deletes it, but neither the default plan nor the one that came with the gateway', () => {
    expect(differenceWithout('gold', 'silver').plans).toMatchObject([{ action: 'delete', id: 'gold' }]);
    for (const [planId, defaultPlanId] of [
      ['gold', 'gold'],
      [SHIPPED_PLAN_ID, null],
    ] as const)
      expect(differenceWithout(planId, defaultPlanId).plans).toMatchObject([
        {
          action: 'update',
          id: planId,
          fields: { managedBy: { from: OWNER, to: null } },
          conflict: undefined,
        },
      ]);
  });
});

it('a plan of the owner that is as wanted, but was left by no configuration, is noted', () => {
  const plan = samplePlan({ managedBy: 'team' });
  const { plans, notedPlans } = differenceBetween(
    { plans: [plan], keys: [], webhooks: [] },
    { plans: [{ plan, managedDigest: null }], keys: [], webhooks: [] },
    { owner: 'team', prune: false, defaultPlanId: null },
  );
  expect(plans).toEqual([]);
  expect(notedPlans).toMatchObject([{ id: plan.id }]);
});
