// The room `desired-state`: declarative configuration, which says what plans and keys should exist.
// In: a configuration, and whose it is.
// Out: the changes that lead there, shown only (diff) or made in one transaction (apply).

import type { ChangeContext } from '../audit/change-context.ts';
import { DigestMismatch, ManagedElsewhere, requireNoFaults, StoreUnavailable } from '../errors.ts';
import type { KeyRepository } from '../keys/key-repository.ts';
import { windowNamesOf } from '../keys/window-names.ts';
import type { RecordVersion, RecordVersions } from '../limiter/record-versions.ts';
import type { PlanRepository } from '../plans/plan-repository.ts';
import type { Clock } from '../platform/clock.ts';
import type { UnitOfWork } from '../platform/unit-of-work.ts';
import { changesOfDifference } from './changes-of-difference.ts';
import type { DesiredState } from './desired-state.ts';
import type {
  DesiredStateStore,
  StateChanges,
  StateSelection,
  StateTransaction,
} from './desired-state-store.ts';
import { conflictsOf, type Difference, differenceBetween, type WebhookStep } from './difference.ts';
import { NewManagedKeys, type NewManagedKeysOptions, type RevealedSecret } from './new-managed-keys.ts';
import {
  checkUrls,
  newManagedWebhooks,
  type RevealedWebhookSecret,
  requireSameReceivers,
  type WebhookMaker,
} from './new-managed-webhooks.ts';
import { digestOf, writtenKey, writtenPlan, writtenWebhook } from './written-state.ts';

/** What `DesiredStateService` is built from. */
export interface DesiredStateServiceOptions extends NewManagedKeysOptions {
  readonly store: DesiredStateStore;
  /** Runs work in one unit of work. */
  readonly inUnit: <Result>(work: (unit: StateUnit) => Promise<Result>) => Promise<Result>;
  /** Reads what is committed. */
  readonly committed: Pick<PlanRepository, 'keysUnder'>;
  /** Marks at once, and publishes when it is called. */
  readonly versions: RecordVersions;
  readonly clock: Clock;
  readonly webhooks: WebhookMaker;
  /** Null if keys without a plan are unlimited. */
  readonly defaultPlanId: string | null;
}

/** The repositories that a configuration is applied with, in one unit of work. */
interface StateUnit extends UnitOfWork {
  readonly desiredState: Pick<DesiredStateStore, 'change'>;
  readonly plans: Pick<PlanRepository, 'keysUnder'>;
  readonly keys: Pick<KeyRepository, 'findSnapshotsOrErrors'>;
}

/** The owner of a configuration, and whether applying it deletes what it does not contain. */
export interface ConfigurationTerms {
  readonly owner: string;
  /** Whether records of the owner that are not in the configuration are deleted, or released if they can't be. */
  readonly prune: boolean;
  /** Throws if the principal may not make these changes to webhooks; undefined: it may make all. */
  readonly requireAllowed?: (steps: readonly WebhookStep[]) => void;
}

export interface ApplyOptions extends ConfigurationTerms {
  /** Also changes records that are managed elsewhere or were changed there. */
  readonly force: boolean;
  /** The digest of the difference that is to be applied; undefined: apply any difference. */
  readonly expectDigest?: string | undefined;
  /** Does nothing if the owner's last applied configuration was the same, even if records were changed since. */
  readonly unlessApplied?: boolean;
  /** New keys need a `secretHash`: a generated secret would never be shown. */
  readonly needsSecretHash?: boolean;
}

/** The result of applying a configuration. */
export interface AppliedState {
  readonly difference: Difference;
  /** The ids of new keys, by externalId. */
  readonly newKeyIds: ReadonlyMap<string, string>;
  /** The secrets of the new keys without a `secretHash`. */
  readonly secrets: readonly RevealedSecret[];
  readonly webhookSecrets: readonly RevealedWebhookSecret[];
}

/** The longest time between marking keys stale in Redis and the commit: half of the time for which the mark lasts. */
const LONGEST_WRITE_MS = 15_000;

/**
 * Brings plans, keys and webhooks to the state that a configuration describes, all or nothing. Once the promise resolves, a change applies to the
 * next request on every replica. If it rejects with `StoreUnavailable`, the change may or may not have been made.
 */
export class DesiredStateService {
  readonly #options: DesiredStateServiceOptions;
  readonly #newManagedKeys: NewManagedKeys;

  constructor(options: DesiredStateServiceOptions) {
    this.#options = options;
    this.#newManagedKeys = new NewManagedKeys(options);
  }

  /** The changes that applying the configuration would make. Throws like `differenceBetween`, and `WebhookUrlNotAllowed`. */
  async diff(
    desired: DesiredState,
    terms: ConfigurationTerms,
    { onlyTags }: Pick<ChangeContext, 'onlyTags'>,
  ): Promise<Difference> {
    requireTags(desired, onlyTags);
    const { store, webhooks, defaultPlanId } = this.#options;
    const present = await store.read(selectionOf(desired, terms, onlyTags));
    const difference = differenceBetween(desired, present, { ...terms, defaultPlanId });
    requireWebhooks(desired, difference, terms);
    await checkUrls(desired, present, webhooks);
    return difference;
  }

  /**
   * Throws like `diff`, and `ManagedElsewhere`, `DigestMismatch`, `PlanInUse` for a plan that would be deleted, and
   * `SecretsTaken`. Undefined if `unlessApplied` is set and the configuration was the last one applied.
   */
  async apply(
    desired: DesiredState,
    options: ApplyOptions,
    change: ChangeContext,
  ): Promise<AppliedState | undefined> {
    requireTags(desired, change.onlyTags);
    const { inUnit, committed, versions, webhooks } = this.#options;
    const selection = selectionOf(desired, options, change.onlyTags);
    // A single transaction for all reads and writes: the embedded store can't run a second one at the same time.
    return inUnit(async (unit) => {
      const written = await unit.desiredState.change(selection, change, (transaction) =>
        this.#write(unit, transaction, { desired, options, change }),
      );
      if (written === undefined) return undefined;
      await unit.afterCommit(async () => {
        const published = new Set<string>();
        for (const planId of this.#plansTouched(written))
          await versions.publishUnder(planId, noted(committed.keysUnder(planId), published));
        // A second version of a key, from before the commit, would be taken for that of another change.
        const others = written.changedVersions.filter(({ keyId }) => !published.has(keyId));
        if (others.length > 0) await versions.publishVersion(others);
        await this.#retire(written);
        if (written.difference.webhooks.length > 0) webhooks.wake();
      });
      return written;
    });
  }

  /** What there is, to be exported. */
  get stored(): Omit<DesiredStateStore, 'read' | 'change'> {
    return this.#options.store;
  }

  async #write(
    unit: StateUnit,
    transaction: StateTransaction,
    { desired, options, change }: Application,
  ): Promise<WrittenState | undefined> {
    const { clock, versions, defaultPlanId, webhooks } = this.#options;
    const appliedDigest = digestOfConfiguration(desired, options);
    if (options.unlessApplied && transaction.appliedDigest?.equals(appliedDigest)) return undefined;
    const difference = differenceBetween(desired, transaction.present, { ...options, defaultPlanId });
    if (options.expectDigest !== undefined && options.expectDigest !== difference.digest)
      throw new DigestMismatch(difference.digest);
    requireWebhooks(desired, difference, options);
    // Takes 2 s at most. Only here is it known that the configuration was not applied already.
    await checkUrls(desired, transaction.present, webhooks);
    const conflicts = conflictsOf(difference, options.force);
    if (conflicts.length > 0) throw new ManagedElsewhere(conflicts);
    if (options.needsSecretHash) requireSecretHashes(desired, difference);
    const { owner } = options;
    const { secrets, newKeys } = await this.#newManagedKeys.make(difference, owner, change);
    const { webhookSecrets, newWebhooks } = newManagedWebhooks(
      difference,
      { maker: webhooks, owner },
      change,
    );
    const made = { newKeys, newWebhooks, appliedDigest };
    const changes = { ...changesOfDifference(difference, owner, change), ...made };
    const retired = await windowNamesOf(
      changes.deletedKeys.map(({ id }) => id),
      unit.keys,
    );
    const stale = await keysTouched(unit, changes);
    const markedAtMs = clock.monotonicMs();
    await versions.markStale(stale);
    const changedVersions = await transaction.write(changes);
    // After the stale marks have expired, replicas could use cached copies again after the commit.
    if (clock.monotonicMs() - markedAtMs > LONGEST_WRITE_MS)
      throw new StoreUnavailable('postgres', new Error('The configuration took too long to be written.'));
    const newKeyIds = new Map(newKeys.map(({ key }) => [key.externalId ?? '', key.id]));
    return { difference, newKeyIds, secrets, webhookSecrets, changes, changedVersions, retired };
  }

  /** The plans whose keys get new versions. */
  #plansTouched({ changes: { changedPlans, newPlans } }: WrittenState): readonly string[] {
    const made = newPlans.filter(({ plan }) => plan.id === this.#options.defaultPlanId);
    return [...changedPlans.map(({ wanted }) => wanted.id), ...made.map(({ plan }) => plan.id)];
  }

  async #retire({ changes, retired }: WrittenState): Promise<void> {
    if (changes.deletedKeys.length === 0) return;
    const keys = changes.deletedKeys.map(({ id }) => ({ keyId: id, windowNames: retired.get(id) }));
    await this.#options.versions.retire(keys);
  }
}

/** The keys whose cached copies become outdated. Each occurs once: a second mark on the same key would never be removed. */
async function keysTouched(
  { plans }: StateUnit,
  { changedPlans, changedKeys, deletedKeys }: Omit<StateChanges, 'newKeys'>,
): Promise<readonly string[]> {
  const touched = new Set([
    ...changedKeys.map(({ before }) => before.id),
    ...deletedKeys.map(({ id }) => id),
  ]);
  for (const { before } of changedPlans) {
    for await (const keys of plans.keysUnder(before.id)) for (const { keyId } of keys) touched.add(keyId);
  }
  return [...touched];
}

/** The same batches. The ids of their keys are added to `ids`. */
async function* noted(
  batches: AsyncIterable<readonly RecordVersion[]>,
  ids: Set<string>,
): AsyncIterable<readonly RecordVersion[]> {
  for await (const versions of batches) {
    for (const { keyId } of versions) ids.add(keyId);
    yield versions;
  }
}

interface Application {
  readonly desired: DesiredState;
  readonly options: ApplyOptions;
  readonly change: ChangeContext;
}

interface WrittenState extends AppliedState {
  readonly changes: StateChanges;
  /** The versions of the changed keys. */
  readonly changedVersions: readonly RecordVersion[];
  /** The window names of the deleted keys, by key id. */
  readonly retired: ReadonlyMap<string, readonly string[]>;
}

function selectionOf(
  { plans, keys, webhooks }: DesiredState,
  { owner, prune }: ConfigurationTerms,
  onlyTags: readonly string[],
): StateSelection {
  return {
    owner,
    hasAllOfOwner: prune,
    planIds: [...new Set([...plans.map(({ id }) => id), ...keys.flatMap(({ planId }) => planId ?? [])])],
    externalIds: keys.map(({ externalId }) => externalId),
    webhookExternalIds: webhooks.map(({ externalId }) => externalId),
    hashedExternalIds: keys.flatMap(({ externalId, secretDigest }) =>
      secretDigest === null ? [] : [externalId],
    ),
    onlyTags,
  };
}

/** Throws `InvalidBody` for keys and webhooks that lack a tag which the principal is limited to. */
function requireTags({ keys, webhooks }: DesiredState, onlyTags: readonly string[]): void {
  const faultOf = (field: string, tags: readonly string[]) => {
    const missing = onlyTags.filter((tag) => !tags.includes(tag));
    if (missing.length === 0) return [];
    const message = `must have the tags that the admin token is limited to: ${missing.join(', ')}`;
    return [{ field, message }];
  };
  requireNoFaults([
    ...keys.flatMap(({ tags }, index) => faultOf(`keys[${index}].tags`, tags)),
    ...webhooks.flatMap(({ onlyTags: tags }, index) => faultOf(`webhooks[${index}].onlyTags`, tags)),
  ]);
}

/** Throws what `requireAllowed` throws, and `InvalidBody` for webhooks that would take their headers to another receiver. */
function requireWebhooks(desired: DesiredState, { webhooks }: Difference, terms: ConfigurationTerms): void {
  terms.requireAllowed?.(webhooks);
  requireSameReceivers(desired, webhooks);
}

/** Throws `InvalidBody` for new keys without a `secretHash`. */
function requireSecretHashes(desired: DesiredState, { keys }: Difference): void {
  const made = new Set(keys.flatMap(({ action, wanted }) => (action === 'create' ? (wanted ?? []) : [])));
  const faults = desired.keys.flatMap((key, index) => {
    if (!made.has(key) || key.secretDigest !== null) return [];
    const message = 'is required for a new key: a secret made here would be shown to no one';
    return [{ field: `keys[${index}].secretHash`, message }];
  });
  requireNoFaults(faults);
}

function digestOfConfiguration(
  { plans, keys, webhooks }: DesiredState,
  { prune, force }: ApplyOptions,
): Buffer {
  const hashes = keys.map(({ secretDigest }) => secretDigest?.toString('hex') ?? null);
  const records = [plans.map(writtenPlan), keys.map(writtenKey), webhooks.map(writtenWebhook)];
  return digestOf([...records, hashes, prune, force]);
}
