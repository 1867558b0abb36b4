import type { ChangeContext } from '../audit/change-context.ts';
import type { Webhook } from '../events/webhook.ts';
import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { DesiredKey, DesiredWebhook } from './desired-state.ts';
import type { StateChanges } from './desired-state-store.ts';
import type { Difference, Step } from './difference.ts';
import { digestOf, writtenKey, writtenPlan, writtenWebhook } from './written-state.ts';

/** The changes to the records that a difference requires, without new keys and webhooks. */
export function changesOfDifference(
  { plans, keys, webhooks, notedPlans, notedKeys, notedWebhooks }: Difference,
  owner: string,
  { atMs }: ChangeContext,
): Omit<StateChanges, 'newKeys' | 'newWebhooks' | 'appliedDigest'> {
  const made = { createdAtMs: atMs, updatedAtMs: atMs, version: 1, managedBy: owner };
  return {
    newPlans: plans.flatMap(({ action, wanted }) =>
      action !== 'create' || wanted === undefined
        ? []
        : [{ plan: { ...wanted, ...made }, managedDigest: digestOf(writtenPlan(wanted)) }],
    ),
    changedPlans: updatesIn(plans).map(({ before: { plan }, wanted, managedBy }) => ({
      before: plan,
      wanted: { ...plan, ...wanted, managedBy },
      managedDigest: digestOf(writtenPlan(wanted)),
    })),
    deletedPlans: deletedBy(plans).map(({ plan }) => plan),
    changedKeys: updatesIn(keys).map(({ before: { key }, wanted, managedBy }) => ({
      before: key,
      wanted: keyAfter(key, wanted, managedBy),
      managedDigest: digestOf(writtenKey(wanted)),
    })),
    deletedKeys: deletedBy(keys).map(({ key }) => key),
    changedWebhooks: updatesIn(webhooks).map(({ before: { webhook }, wanted, managedBy }) => ({
      before: webhook,
      wanted: webhookAfter(webhook, wanted, managedBy),
      managedDigest: digestOf(writtenWebhook(wanted)),
    })),
    deletedWebhooks: deletedBy(webhooks).map(({ webhook }) => webhook),
    notedPlans,
    notedKeys,
    notedWebhooks,
  };
}

function updatesIn<Present, Wanted>(steps: readonly Step<Present, Wanted>[]) {
  return steps.flatMap(({ before, wanted, managedBy }) =>
    before === undefined || wanted === undefined ? [] : [{ before, wanted, managedBy }],
  );
}

/** What is there now of the records that are to be deleted. */
function deletedBy<Present>(steps: readonly Step<Present, unknown>[]): readonly Present[] {
  return steps.flatMap(({ action, before }) => (action === 'delete' && before !== undefined ? [before] : []));
}

function keyAfter(before: ConsumerKey, wanted: DesiredKey, managedBy: string | null): ConsumerKey {
  const { secretDigest: _, ...fields } = wanted;
  return { ...before, ...fields, managedBy };
}

function webhookAfter(before: Webhook, wanted: DesiredWebhook, managedBy: string | null): Webhook {
  const isEnabledAgain = wanted.enabled && !before.enabled;
  return {
    ...before,
    ...wanted,
    ...{ managedBy, disabledReason: null },
    ...(isEnabledAgain && { failingSinceMs: null }),
    ...(wanted.url !== before.url && { failingSinceMs: null }),
  };
}
