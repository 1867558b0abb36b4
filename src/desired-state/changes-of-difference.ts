import type { ChangeContext } from '../audit/change-context.ts';
import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { DesiredKey } from './desired-state.ts';
import type { StateChanges } from './desired-state-store.ts';
import type { Difference } from './difference.ts';
import { digestOf, writtenKey, writtenPlan } from './written-state.ts';

/** The changes to the records that a difference requires, without new keys. */
export function changesOfDifference(
  { plans, keys, notedPlans, notedKeys }: Difference,
  managedBy: string,
  { atMs }: ChangeContext,
): Omit<StateChanges, 'newKeys' | 'appliedDigest'> {
  const made = { createdAtMs: atMs, updatedAtMs: atMs, version: 1, managedBy };
  return {
    newPlans: plans.flatMap(({ action, wanted }) =>
      action !== 'create' || wanted === undefined
        ? []
        : [{ plan: { ...wanted, ...made }, managedDigest: digestOf(writtenPlan(wanted)) }],
    ),
    changedPlans: plans.flatMap(({ before, wanted }) =>
      before === undefined || wanted === undefined
        ? []
        : [
            {
              before: before.plan,
              wanted: { ...before.plan, ...wanted, managedBy },
              managedDigest: digestOf(writtenPlan(wanted)),
            },
          ],
    ),
    deletedPlans: plans.flatMap(({ action, before }) =>
      action === 'delete' && before !== undefined ? [before.plan] : [],
    ),
    changedKeys: keys.flatMap(({ before, wanted }) =>
      before === undefined || wanted === undefined
        ? []
        : [
            {
              before: before.key,
              wanted: keyAfter(before.key, wanted, managedBy),
              managedDigest: digestOf(writtenKey(wanted)),
            },
          ],
    ),
    deletedKeys: keys.flatMap(({ action, before }) =>
      action === 'delete' && before !== undefined ? [before.key] : [],
    ),
    notedPlans,
    notedKeys,
  };
}

function keyAfter(before: ConsumerKey, wanted: DesiredKey, managedBy: string): ConsumerKey {
  const { secretDigest: _, ...fields } = wanted;
  return { ...before, ...fields, managedBy };
}
