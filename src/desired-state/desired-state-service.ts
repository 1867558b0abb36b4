import type { ChangeContext } from '../audit/change-context.ts';
import { DigestMismatch, ManagedElsewhere, requireNoFaults, StoreUnavailable } from '../errors.ts';
import type { ConsumerKey } from '../keys/consumer-key.ts';
import type { KeyRepository } from '../keys/key-repository.ts';
import type { RecordVersion, RecordVersions } from '../limiter/record-versions.ts';
import type { Plan } from '../plans/plan.ts';
import type { PlanRepository } from '../plans/plan-repository.ts';
import type { UnitOfWork } from '../platform/unit-of-work.ts';
import { changesOfDifference } from './changes-of-difference.ts';
import type { DesiredState } from './desired-state.ts';
import type {
  DesiredStateStore,
  ExportSelection,
  StateChanges,
  StateSelection,
  StateTransaction,
} from './desired-state-store.ts';
import { conflictsOf, type Difference, differenceBetween } from './difference.ts';
import { NewManagedKeys, type NewManagedKeysOptions, type RevealedSecret } from './new-managed-keys.ts';
import { digestOf, writtenKey, writtenPlan } from './written-state.ts';

/** What configurations are applied with. */
export interface DesiredStateServiceOptions extends NewManagedKeysOptions {
  readonly store: DesiredStateStore;
  readonly plans: Pick<PlanRepository, 'keysUnder'>;
  readonly keys: Pick<KeyRepository, 'findSnapshotsById'>;
  readonly unitOfWork: Pick<UnitOfWork, 'join' | 'afterCommit'>;
  readonly versions: RecordVersions;
  /** Null: keys without a plan are unlimited. */
  readonly defaultPlanId: string | null;
}

/** Whose configuration it is, and what becomes of what it does not have. */
export interface ConfigurationTerms {
  readonly owner: string;
  /** What the owner manages and the configuration does not have is deleted. */
  readonly prune: boolean;
}

export interface ApplyOptions extends ConfigurationTerms {
  /** Takes over what is managed elsewhere, or was changed there. */
  readonly force: boolean;
  /** Of the difference that is to be applied; undefined: whatever it is. */
  readonly expectDigest?: string | undefined;
  /** Does nothing where the same configuration was the owner's last one, whatever has become of it since. */
  readonly unlessApplied?: boolean;
  /** New keys must bring a secretHash: a secret that is made for them would be shown to no one. */
  readonly needsSecretHash?: boolean;
}

/** What was applied. */
export interface AppliedState {
  readonly difference: Difference;
  /** By externalId. */
  readonly newKeyIds: ReadonlyMap<string, string>;
  /** Of the new keys that brought none. */
  readonly secrets: readonly RevealedSecret[];
}

/** Longest that a change may take between the mark in Redis and its commit: half of the mark's time. */
const LONGEST_WRITE_MS = 15_000;
/** Deleted keys whose counters are removed together. */
const RETIRED_AT_ONCE = 50;

/**
 * Brings plans and keys to the state that a configuration wants, all or nothing. A change holds on every replica with the next request
 * once its promise is resolved; when it rejects with `StoreUnavailable` it may or may not have been made.
 */
export class DesiredStateService {
  readonly #options: DesiredStateServiceOptions;
  readonly #newManagedKeys: NewManagedKeys;

  constructor(options: DesiredStateServiceOptions) {
    this.#options = options;
    this.#newManagedKeys = new NewManagedKeys(options);
  }

  /** What applying would do. Throws as `differenceBetween` does. */
  async diff(
    desired: DesiredState,
    terms: ConfigurationTerms,
    { onlyTags }: Pick<ChangeContext, 'onlyTags'>,
  ): Promise<Difference> {
    requireTags(desired, onlyTags);
    const present = await this.#options.store.read(selectionOf(desired, terms, onlyTags));
    return differenceBetween(desired, present, { ...terms, defaultPlanId: this.#options.defaultPlanId });
  }

  /**
   * Throws as `differenceBetween` does, `ManagedElsewhere`, `DigestMismatch`, `PlanInUse` for a plan that would be deleted, and `SecretsTaken`.
   * Undefined where it was applied before and need not be again.
   */
  async apply(
    desired: DesiredState,
    options: ApplyOptions,
    change: ChangeContext,
  ): Promise<AppliedState | undefined> {
    requireTags(desired, change.onlyTags);
    const { store, versions, unitOfWork } = this.#options;
    const selection = selectionOf(desired, options, change.onlyTags);
    // One transaction for all that is read and written here: the embedded store has no second one beside it.
    return unitOfWork.join(async () => {
      const written = await store.change(selection, change, (transaction) =>
        this.#write(transaction, { desired, options, change }),
      );
      if (written === undefined) return undefined;
      const published = await this.#versionsAfter(written);
      await unitOfWork.afterCommit(async () => {
        await versions.publishVersion(published);
        await this.#retire(written);
      });
      return written;
    });
  }

  /** The plans that an owner manages, or all, by id. */
  exportPlans(owner: string | undefined): Promise<readonly Plan[]> {
    return this.#options.store.exportPlans(owner);
  }

  /** The keys whose externalId no other key of the selection has, in batches. */
  exportKeys(selection: ExportSelection): AsyncIterable<readonly ConsumerKey[]> {
    return this.#options.store.exportKeys(selection);
  }

  /** How many keys can't be exported: they have no externalId, or share it. */
  countLeftOut(selection: ExportSelection): Promise<number> {
    return this.#options.store.countLeftOut(selection);
  }

  async #write(
    transaction: StateTransaction,
    { desired, options, change }: Application,
  ): Promise<WrittenState | undefined> {
    const { clock, versions, defaultPlanId } = this.#options;
    const appliedDigest = digestOfConfiguration(desired, options);
    if (options.unlessApplied && transaction.appliedDigest?.equals(appliedDigest)) return undefined;
    const difference = differenceBetween(desired, transaction.present, { ...options, defaultPlanId });
    if (options.expectDigest !== undefined && options.expectDigest !== difference.digest)
      throw new DigestMismatch(difference.digest);
    const conflicts = conflictsOf(difference, options.force);
    if (conflicts.length > 0) throw new ManagedElsewhere(conflicts);
    if (options.needsSecretHash) requireSecretHashes(desired, difference);
    const { secrets, newKeys } = await this.#newManagedKeys.make(difference, options.owner, change);
    const changes = { ...changesOfDifference(difference, options.owner, change), newKeys, appliedDigest };
    const retired = await this.#windowNames(changes.deletedKeys);
    const stale = await this.#keysTouched(changes);
    const markedAtMs = clock.nowMs();
    await versions.markStale(stale);
    const changedVersions = await transaction.write(changes);
    // A mark that has lapsed would let old copies be used again after the commit.
    if (clock.nowMs() - markedAtMs > LONGEST_WRITE_MS)
      throw new StoreUnavailable('postgres', new Error('The configuration took too long to be written.'));
    const newKeyIds = new Map(newKeys.map(({ key }) => [key.externalId ?? '', key.id]));
    return { difference, newKeyIds, secrets, changes, changedVersions, retired };
  }

  /** The keys of which replicas may have copies that are about to be outdated, each once: a second mark would never be withdrawn. */
  async #keysTouched({
    changedPlans,
    changedKeys,
    deletedKeys,
  }: Omit<StateChanges, 'newKeys'>): Promise<readonly string[]> {
    const touched = new Set([
      ...changedKeys.map(({ before }) => before.id),
      ...deletedKeys.map(({ id }) => id),
    ]);
    for (const { before } of changedPlans) {
      for await (const keys of this.#options.plans.keysUnder(before.id))
        for (const { keyId } of keys) touched.add(keyId);
    }
    return [...touched];
  }

  /** Read after the write: keys that came under the plans meanwhile are among them. */
  async #versionsAfter({ changes, changedVersions }: WrittenState): Promise<readonly RecordVersion[]> {
    const { plans, defaultPlanId } = this.#options;
    const versions = new Map(changedVersions.map((version) => [version.keyId, version]));
    const made = changes.newPlans.filter(({ plan }) => plan.id === defaultPlanId).map(({ plan }) => plan);
    for (const { id } of [...changes.changedPlans.map(({ wanted }) => wanted), ...made]) {
      for await (const keys of plans.keysUnder(id))
        for (const version of keys) versions.set(version.keyId, version);
    }
    return [...versions.values()];
  }

  async #retire({ changes, retired }: WrittenState): Promise<void> {
    const { versions } = this.#options;
    const { deletedKeys } = changes;
    for (let start = 0; start < deletedKeys.length; start += RETIRED_AT_ONCE) {
      const some = deletedKeys.slice(start, start + RETIRED_AT_ONCE);
      await Promise.all(some.map(({ id }) => versions.retire(id, retired.get(id))));
    }
  }

  /** Of the plans that apply to the keys; what other plans left behind ends by itself. */
  async #windowNames(keys: readonly ConsumerKey[]): Promise<ReadonlyMap<string, readonly string[]>> {
    if (keys.length === 0) return new Map();
    try {
      const snapshots = await this.#options.keys.findSnapshotsById(keys.map(({ id }) => id));
      return new Map(
        snapshots.map(({ keyId, plan }) => [
          keyId,
          plan?.limits.all.map(({ windowName }) => windowName) ?? [],
        ]),
      );
    } catch (error) {
      // Keys whose plan does not exist can be deleted all the same; if the store is unavailable, the deletion itself fails.
      if (error instanceof StoreUnavailable) return new Map();
      throw error;
    }
  }
}

interface Application {
  readonly desired: DesiredState;
  readonly options: ApplyOptions;
  readonly change: ChangeContext;
}

interface WrittenState extends AppliedState {
  readonly changes: StateChanges;
  /** Of the changed keys. */
  readonly changedVersions: readonly RecordVersion[];
  /** The windows of the deleted keys, by id. */
  readonly retired: ReadonlyMap<string, readonly string[]>;
}

function selectionOf(
  { plans, keys }: DesiredState,
  { owner }: ConfigurationTerms,
  onlyTags: readonly string[],
): StateSelection {
  return {
    owner,
    planIds: [...new Set([...plans.map(({ id }) => id), ...keys.flatMap(({ planId }) => planId ?? [])])],
    externalIds: keys.map(({ externalId }) => externalId),
    hashedExternalIds: keys.flatMap(({ externalId, secretDigest }) =>
      secretDigest === null ? [] : [externalId],
    ),
    onlyTags,
  };
}

/** Throws `InvalidBody` for keys outside the tags that the principal is limited to. */
function requireTags({ keys }: DesiredState, onlyTags: readonly string[]): void {
  const faults = keys.flatMap(({ tags }, index) => {
    const missing = onlyTags.filter((tag) => !tags.includes(tag));
    if (missing.length === 0) return [];
    const message = `must have the tags that the admin token is limited to: ${missing.join(', ')}`;
    return [{ field: `keys[${index}].tags`, message }];
  });
  requireNoFaults(faults);
}

/** Throws `InvalidBody` for new keys that bring no secret. */
function requireSecretHashes(desired: DesiredState, { keys }: Difference): void {
  const made = new Set(keys.flatMap(({ action, wanted }) => (action === 'create' ? (wanted ?? []) : [])));
  const faults = desired.keys.flatMap((key, index) => {
    if (!made.has(key) || key.secretDigest !== null) return [];
    const message = 'is required for a new key: a secret made here would be shown to no one';
    return [{ field: `keys[${index}].secretHash`, message }];
  });
  requireNoFaults(faults);
}

function digestOfConfiguration({ plans, keys }: DesiredState, { prune, force }: ApplyOptions): Buffer {
  const hashes = keys.map(({ secretDigest }) => secretDigest?.toString('hex') ?? null);
  return digestOf([plans.map(writtenPlan), keys.map(writtenKey), hashes, prune, force]);
}
