// The room `keys`: consumer keys with their records, secrets and rotations, and the cache of them (`cache/`) that every request reads.
// In: changes by administrators, and secrets that requests present.
// Out: records without secrets, snapshots for decisions, and secrets only where they are asked for. Whether a snapshot may be used now,
// and so when a previous secret or a key ends, `keyFault` in `proxy/steps/authenticate.ts` decides.

import type { ChangeContext } from '../audit/change-context.ts';
import { InvalidBody, KeyNotFound, PlanNotFound, type TollgateError } from '../errors.ts';
import type { RecordVersions } from '../limiter/record-versions.ts';
import { isVisible, MAX_TAGS } from '../permissions/visible-records.ts';
import type { Clock } from '../platform/clock.ts';
import type { Random } from '../platform/random.ts';
import { createSecret, maskedSecret } from '../secrets/secret-format.ts';
import type { SecretVault } from '../secrets/secret-vault.ts';
import type { ConsumerKey, KeySnapshot } from './consumer-key.ts';
import { isKeyId } from './key-id.ts';
import {
  type KeyFilter,
  type KeyListStore,
  type KeyPage,
  type KeySelection,
  readKeyPage,
} from './key-list.ts';
import type { KeyChanges, KeyRepository, StoredKey, UpdateFailure } from './key-repository.ts';
import { rotationAt } from './key-rotation.ts';
import { withinOwnTags } from './key-tags.ts';
import { type NewKeyFields, newKey, recordOf } from './new-key.ts';
import { SecretSealer } from './secrets/stored-secret.ts';
import { windowNamesOf } from './window-names.ts';

/** What the service of keys needs. */
export interface KeyServiceOptions {
  readonly repository: KeyRepository;
  readonly keyList: KeyListStore;
  readonly versions: RecordVersions;
  readonly vault: SecretVault;
  readonly clock: Clock;
  readonly random: Random;
  readonly makeId: () => string;
  /** What new secrets begin with: a letter and at most 15 letters and digits. */
  readonly keyPrefix: string;
  /** `once`: a secret is shown when it is made and never again, and is not stored in a form that could be opened. */
  readonly reveal: 'always' | 'once';
}

/**
 * Makes, shows, changes and deletes keys. Once its promise has resolved, a change takes effect on every replica with the next request, or
 * within seconds if the versions defer it; if it rejects with `StoreUnavailable`, the change may or may not have been made. Names and dates
 * come in validated.
 */
export class KeyService {
  readonly #options: KeyServiceOptions;
  readonly #sealer: SecretSealer;

  constructor(options: KeyServiceOptions) {
    this.#options = options;
    this.#sealer = new SecretSealer(options);
  }

  /**
   * Makes a key. The default plan applies to it unless another one is given. Returns the secret as well; `reveal` decides whether it can be
   * read again later. Throws `PlanNotFound`.
   */
  async create(
    fields: NewKeyFields,
    change: ChangeContext,
  ): Promise<{ readonly key: ConsumerKey; readonly secret: string }> {
    const { repository, random, makeId, keyPrefix } = this.#options;
    const id = makeId();
    const secret = createSecret(keyPrefix, random);
    const key = newKey(id, { ...fields, secret: this.#sealer.seal(id, secret, 'generated') }, change);
    if (!(await repository.insert(key, change))) throw new PlanNotFound();
    return { key: recordOf(key), secret };
  }

  /** A page of the list. */
  async page(selection: KeySelection): Promise<KeyPage> {
    const { keyList, clock } = this.#options;
    const page = await readKeyPage(keyList, selection, clock.nowMs());
    return { ...page, keys: page.keys.map((key) => this.#now(key)) };
  }

  /** How many keys meet the filter. */
  count(filter: KeyFilter): Promise<number> {
    const { keyList, clock } = this.#options;
    return keyList.count(filter, clock.nowMs());
  }

  /** The snapshots of the keys that exist. Rejects with the error of any of them. */
  async snapshots(keyIds: readonly string[]): Promise<readonly KeySnapshot[]> {
    const found = await this.#options.repository.findSnapshotsOrErrors(keyIds);
    return [...found.values()].map((snapshot) => {
      if (snapshot instanceof Error) throw snapshot;
      return snapshot;
    });
  }

  /** The names of the keys that exist, by id. */
  names(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#options.repository.findNames(keyIds);
  }

  /** The secret of a key; null where it must not be shown again, or is not kept. */
  openSecret({ key, sealedSecret }: Pick<StoredKey, 'key' | 'sealedSecret'>): string | null {
    const { vault, reveal } = this.#options;
    return reveal === 'once' || sealedSecret === null ? null : vault.open(key.id, sealedSecret);
  }

  /** What is shown in the place of a secret. */
  get maskedSecret(): string {
    return maskedSecret(this.#options.keyPrefix);
  }

  /** The stored key, with its secret sealed. Throws `KeyNotFound`, also for a key that lacks one of the tags. */
  async record(keyId: string, onlyTags: readonly string[]): Promise<StoredKey> {
    // Text of another form is no key id, and may hold bytes that a database rejects.
    const stored = isKeyId(keyId) ? await this.#options.repository.find(keyId) : undefined;
    if (stored === undefined || !isVisible(stored.key.tags, onlyTags)) {
      throw new KeyNotFound();
    }
    return { ...stored, key: this.#now(stored.key) };
  }

  /**
   * Throws `KeyNotFound`, `PlanNotFound`, `InvalidBody` for tags that are not allowed, or `VersionMismatch` if the key is not in the
   * expected state.
   */
  async update(keyId: string, changes: KeyChanges, change: ChangeContext): Promise<ConsumerKey> {
    const updated = (await this.updateAll([keyId], changes, change)).get(keyId);
    if (updated === undefined || 'code' in updated) throw updated ?? new KeyNotFound();
    return updated;
  }

  /** Makes the same changes to several keys. Resolves with the keys, and with the errors of those that were not changed. Throws as `update`. */
  async updateAll(
    keyIds: readonly string[],
    changes: KeyChanges,
    change: ChangeContext,
  ): Promise<ReadonlyMap<string, ConsumerKey | TollgateError>> {
    const { repository, versions } = this.#options;
    const allowed = withinOwnTags(changes, change);
    const present = await this.#existing(keyIds, change.onlyTags);
    if (present.length === 0) return new Map(keyIds.map((keyId) => [keyId, new KeyNotFound()]));
    await versions.markStale(present);
    const updates = await repository.updateAll(present, allowed, change);
    const published = [...updates].flatMap(([keyId, updated]) =>
      typeof updated === 'string' ? [] : [{ keyId, version: updated.version }],
    );
    if (published.length > 0) await versions.publishVersion(published);
    return new Map(
      keyIds.map((keyId) => {
        const updated = updates.get(keyId) ?? 'key_not_found';
        return [keyId, typeof updated === 'string' ? updateError(updated) : this.#now(updated.key)];
      }),
    );
  }

  /** From now on the plan applies to the key. Throws `KeyNotFound`, `PlanNotFound` or `VersionMismatch`. */
  async bind(keyId: string, planId: string, change: ChangeContext): Promise<KeySnapshot> {
    const { repository, versions } = this.#options;
    await this.requireKey(keyId, change.onlyTags);
    if (!(await repository.planExists(planId))) {
      throw new PlanNotFound();
    }
    await versions.markStale([keyId]);
    const snapshot = await repository.bind(keyId, planId, change);
    if (snapshot === 'key_not_found') {
      throw new KeyNotFound();
    }
    if (snapshot === 'plan_not_found') {
      throw new PlanNotFound();
    }
    await versions.publishVersion([{ keyId, version: snapshot.version }]);
    return snapshot;
  }

  /**
   * Deletes a key. Its secret is rejected from now on; its counters and its usage are removed, except for the usage over time. If the key
   * is gone already, the clean-up is repeated before `KeyNotFound` is thrown, because an earlier call may have deleted the key and then
   * failed; not for a caller that is limited to tags. Throws `VersionMismatch` if the key is not in the expected state.
   */
  async remove(keyId: string, change: ChangeContext): Promise<void> {
    const deleted = await this.removeAll([keyId], change);
    if (!deleted.has(keyId)) throw new KeyNotFound();
  }

  /** Deletes several keys. Resolves with those that there were. Throws as `remove`. */
  async removeAll(keyIds: readonly string[], change: ChangeContext): Promise<ReadonlySet<string>> {
    const { repository, versions } = this.#options;
    const isLimited = change.onlyTags.length > 0;
    // The clean-up below is done even if the row is gone, but never for a key that the caller can't see.
    const chosen = isLimited ? await this.#existing(keyIds, change.onlyTags) : keyIds.filter(isKeyId);
    if (chosen.length === 0) return new Set();
    await versions.markStale(chosen);
    const windowNames = await windowNamesOf(chosen, repository);
    const deleted = await repository.deleteAll(chosen, change);
    // A caller that is limited to tags may have lost sight of a key since the check above.
    const retired = isLimited ? chosen.filter((keyId) => deleted.has(keyId)) : chosen;
    if (retired.length > 0)
      await versions.retire(retired.map((keyId) => ({ keyId, windowNames: windowNames.get(keyId) })));
    return deleted;
  }

  #now(key: ConsumerKey): ConsumerKey {
    return rotationAt(key, this.#options.clock.nowMs());
  }

  /** Throws `KeyNotFound`. Does not read the snapshot, so that a key can be changed even if its default plan does not exist. */
  async requireKey(keyId: string, onlyTags: readonly string[]): Promise<void> {
    if ((await this.#existing([keyId], onlyTags)).length === 0) throw new KeyNotFound();
  }

  /** Those of the keys that exist with all of the tags. */
  async #existing(keyIds: readonly string[], onlyTags: readonly string[]): Promise<readonly string[]> {
    const chosen = keyIds.filter(isKeyId);
    if (chosen.length === 0) return [];
    const existing = await this.#options.repository.existing(chosen, onlyTags);
    return chosen.filter((keyId) => existing.has(keyId));
  }
}

function updateError(failure: UpdateFailure): TollgateError {
  switch (failure) {
    case 'key_not_found':
      return new KeyNotFound();
    case 'plan_not_found':
      return new PlanNotFound();
    case 'too_many_tags':
      return new InvalidBody([{ field: 'addTags', message: `must leave the key at most ${MAX_TAGS} tags` }]);
  }
}
