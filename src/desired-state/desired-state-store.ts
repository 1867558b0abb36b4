import type { ChangeContext } from '../audit/change-context.ts';
import type { StoredWebhook, Webhook } from '../events/webhook.ts';
import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { NewConsumerKey } from '../keys/key-repository.ts';
import type { SecretMatch } from '../keys/secrets/stored-secret.ts';
import type { RecordVersion } from '../limiter/record-versions.ts';
import type { Plan } from '../plans/plan.ts';

/** The present records that a configuration may change. */
export interface PresentState {
  readonly plans: readonly PresentPlan[];
  /** Sorted by id. */
  readonly keys: readonly PresentKey[];
  /** Sorted by id. */
  readonly webhooks: readonly PresentWebhook[];
}

export interface PresentPlan {
  readonly plan: Plan;
  /** The digest of the state in which a configuration left the record; null if none did. */
  readonly managedDigest: Buffer | null;
}

export interface PresentKey {
  readonly key: ConsumerKey;
  readonly managedDigest: Buffer | null;
}

export interface PresentWebhook {
  readonly webhook: Webhook;
  readonly managedDigest: Buffer | null;
}

/** Selects the records that a configuration may change: those that it names, and the plans that its owner manages. */
export interface StateSelection {
  readonly owner: string;
  /** Whether all keys and webhooks that the owner manages are selected as well: those that are not named may be deleted. */
  readonly hasAllOfOwner: boolean;
  /** Includes the plans of the configuration's keys. */
  readonly planIds: readonly string[];
  readonly externalIds: readonly string[];
  /** The externalIds of keys with a `secretHash`, which is used if they are new. */
  readonly hashedExternalIds: readonly string[];
  readonly webhookExternalIds: readonly string[];
  /** Only keys with all of these tags, and webhooks that are limited to them; empty: all. */
  readonly onlyTags: readonly string[];
}

/** A new key. */
export interface NewManagedKey {
  readonly key: NewConsumerKey;
  /** Identifies an imported secret; undefined for a generated one. */
  readonly match: SecretMatch | undefined;
  readonly managedDigest: Buffer;
}

/** The present and the wanted state of a record. */
interface Changed<Present, Wanted> {
  readonly before: Present;
  readonly wanted: Wanted;
  readonly managedDigest: Buffer;
}

/** The changes to write. Changed records get a new version. */
export interface StateChanges {
  readonly newPlans: readonly { readonly plan: Plan; readonly managedDigest: Buffer }[];
  readonly changedPlans: readonly Changed<Plan, Plan>[];
  readonly deletedPlans: readonly Plan[];
  readonly newKeys: readonly NewManagedKey[];
  readonly changedKeys: readonly Changed<ConsumerKey, ConsumerKey>[];
  readonly deletedKeys: readonly ConsumerKey[];
  readonly newWebhooks: readonly { readonly stored: StoredWebhook; readonly managedDigest: Buffer }[];
  readonly changedWebhooks: readonly Changed<Webhook, Webhook>[];
  readonly deletedWebhooks: readonly Webhook[];
  /** Records that already are as wanted, but by someone else's change: only the digest is stored. */
  readonly notedPlans: readonly { readonly id: string; readonly managedDigest: Buffer }[];
  readonly notedKeys: readonly { readonly id: string; readonly managedDigest: Buffer }[];
  readonly notedWebhooks: readonly { readonly id: string; readonly managedDigest: Buffer }[];
  /** The digest of the whole configuration. */
  readonly appliedDigest: Buffer;
}

/** A transaction that protects the state it has read from changes elsewhere. */
export interface StateTransaction {
  readonly present: PresentState;
  /** The digest of the owner's last applied configuration; undefined if there is none. */
  readonly appliedDigest: Buffer | undefined;
  /**
   * Writes the changes. Resolves with the new versions of the changed keys' snapshots. Throws `PlanInUse`, `SecretsTaken` if a key has one
   * of the imported secrets, and `ManagedElsewhere` if a plan was made elsewhere meanwhile.
   */
  write(changes: StateChanges): Promise<readonly RecordVersion[]>;
}

/** Selects the keys and webhooks to export. */
export interface ExportSelection {
  /** Undefined: those of any owner, or of none. */
  readonly owner: string | undefined;
  readonly onlyTags: readonly string[];
}

/** Stores the plans, keys and webhooks of configurations. Every method rejects with `StoreUnavailable` if the store does not respond. */
export interface DesiredStateStore {
  read(selection: StateSelection): Promise<PresentState>;
  /**
   * Runs work in a transaction. Its writes and their entries in the audit log are committed when the work resolves, and rolled back if it
   * rejects. Of several configurations, also on different replicas, one is applied at a time.
   */
  change<Result>(
    selection: StateSelection,
    change: ChangeContext,
    work: (transaction: StateTransaction) => Promise<Result>,
  ): Promise<Result>;
  /** The plans that an owner manages, or all, by id. */
  exportPlans(owner: string | undefined): Promise<readonly Plan[]>;
  /** The keys with an externalId that is unique in the selection, by externalId, in batches. */
  exportKeys(selection: ExportSelection): AsyncIterable<readonly ConsumerKey[]>;
  /** The webhooks with an externalId that is unique in the selection, by externalId. */
  exportWebhooks(selection: ExportSelection): Promise<readonly Webhook[]>;
  /** The number of keys of the selection that have no externalId, or share it. */
  countLeftOut(selection: ExportSelection): Promise<number>;
}
