import type { ChangeContext } from '../audit/change-context.ts';
import type { Webhook } from '../events/webhook.ts';
import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { DesiredKey, DesiredWebhook } from './desired-state.ts';
import type { StateChanges } from './desired-state-store.ts';
import type { Difference } from './difference.ts';
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
    changedPlans: plans.flatMap(({ before, wanted, managedBy }) =>
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
    changedKeys: keys.flatMap(({ before, wanted, managedBy }) =>
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
    changedWebhooks: webhooks.flatMap(({ before, wanted, managedBy }) =>
      before === undefined || wanted === undefined
        ? []
        : [
            {
              before: before.webhook,
              wanted: webhookAfter(before.webhook, wanted, managedBy),
              managedDigest: digestOf(writtenWebhook(wanted)),
            },
          ],
    ),
    deletedWebhooks: webhooks.flatMap(({ action, before }) =>
      action === 'delete' && before !== undefined ? [before.webhook] : [],
    ),
    notedPlans,
    notedKeys,
    notedWebhooks,
  };
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
