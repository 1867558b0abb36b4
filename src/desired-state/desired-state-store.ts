import type { ChangeContext } from '../audit/change-context.ts';
import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { NewConsumerKey } from '../keys/key-repository.ts';
import type { SecretMatch } from '../keys/secrets/stored-secret.ts';
import type { RecordVersion } from '../limiter/record-versions.ts';
import type { Plan } from '../plans/plan.ts';

/** What there is, as far as a configuration may be about it. */
export interface PresentState {
  readonly plans: readonly PresentPlan[];
  /** By id. */
  readonly keys: readonly PresentKey[];
}

export interface PresentPlan {
  readonly plan: Plan;
  /** Of the state in which a configuration left it; null: none did. */
  readonly managedDigest: Buffer | null;
}

export interface PresentKey {
  readonly key: ConsumerKey;
  readonly managedDigest: Buffer | null;
}

/** What a configuration may be about: the plans and keys that it names, and all that its owner manages. */
export interface StateSelection {
  readonly owner: string;
  /** Those that its keys are bound to included. */
  readonly planIds: readonly string[];
  readonly externalIds: readonly string[];
  /** Those of them whose keys, where they are new, bring their secrets. */
  readonly hashedExternalIds: readonly string[];
  /** Only keys with all of these tags; empty: all keys. */
  readonly onlyTags: readonly string[];
}

/** A new key. */
export interface NewManagedKey {
  readonly key: NewConsumerKey;
  /** Of a secret from outside; undefined for one that the gateway has made. */
  readonly match: SecretMatch | undefined;
  readonly managedDigest: Buffer;
}

/** Something that there is, as it is to be. */
interface Changed<Present, Wanted> {
  readonly before: Present;
  readonly wanted: Wanted;
  readonly managedDigest: Buffer;
}

/** What is to be written. What is changed has another version afterwards. */
export interface StateChanges {
  readonly newPlans: readonly { readonly plan: Plan; readonly managedDigest: Buffer }[];
  readonly changedPlans: readonly Changed<Plan, Plan>[];
  readonly deletedPlans: readonly Plan[];
  readonly newKeys: readonly NewManagedKey[];
  readonly changedKeys: readonly Changed<ConsumerKey, ConsumerKey>[];
  readonly deletedKeys: readonly ConsumerKey[];
  /** What is as it is wanted, but was brought there by someone else: noted without a change. */
  readonly notedPlans: readonly { readonly id: string; readonly managedDigest: Buffer }[];
  readonly notedKeys: readonly { readonly id: string; readonly managedDigest: Buffer }[];
  /** Of the whole configuration. */
  readonly appliedDigest: Buffer;
}

/** A transaction that keeps the state that it has read from being changed elsewhere. */
export interface StateTransaction {
  readonly present: PresentState;
  /** Of the last configuration of the owner that was applied; undefined: none was. */
  readonly appliedDigest: Buffer | undefined;
  /**
   * Writes the changes. Resolves with the versions that the snapshots of the changed keys have then. Throws `PlanInUse`, and
   * `SecretsTaken` for secrets from outside that a key has.
   */
  write(changes: StateChanges): Promise<readonly RecordVersion[]>;
}

/** Which keys are exported. */
export interface ExportSelection {
  /** Undefined: of any owner, or none. */
  readonly owner: string | undefined;
  readonly onlyTags: readonly string[];
}

/** Where the state is kept that configurations are about. Every method rejects with `StoreUnavailable` when the store does not respond. */
export interface DesiredStateStore {
  read(selection: StateSelection): Promise<PresentState>;
  /**
   * Runs work in a transaction: what it writes is written, with its entries in the audit log, once the work is done, and not at all where
   * that rejects. Configurations take turns, whichever replicas apply them.
   */
  change<Result>(
    selection: StateSelection,
    change: ChangeContext,
    work: (transaction: StateTransaction) => Promise<Result>,
  ): Promise<Result>;
  /** The plans that an owner manages, or all, by id. */
  exportPlans(owner: string | undefined): Promise<readonly Plan[]>;
  /** The keys whose externalId no other key of the selection has, by externalId, in batches. */
  exportKeys(selection: ExportSelection): AsyncIterable<readonly ConsumerKey[]>;
  /** How many keys of the selection have no externalId, or one that another one has. */
  countLeftOut(selection: ExportSelection): Promise<number>;
}
