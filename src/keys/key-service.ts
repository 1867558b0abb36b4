import { KeyNotFound, PlanNotFound } from '../errors.ts';
import type { RecordVersions } from '../limiter/record-versions.ts';
import type { Clock } from '../platform/clock.ts';
import type { Random } from '../platform/random.ts';
import type { ConsumerKey, KeyGrant } from './consumer-key.ts';
import { isKeyId, keyIdMaker } from './key-id.ts';
import { cursorAfter, idOfCursor } from './key-list-cursor.ts';
import type { KeyChanges, KeyRepository } from './key-repository.ts';
import { createSecret, maskedSecret } from './secret-format.ts';
import type { SecretVault } from './secret-vault.ts';

/** What the service of keys works with. */
export interface KeyServiceOptions {
  readonly repository: KeyRepository;
  readonly versions: RecordVersions;
  readonly vault: SecretVault;
  readonly clock: Clock;
  readonly random: Random;
  /** In front of new secrets: a letter and at most 15 letters and digits. */
  readonly keyPrefix: string;
  /** `once`: a secret is shown when it is made and never again, and is not stored in a form that could be opened. */
  readonly reveal: 'always' | 'once';
  /** Forgets the usage of a deleted key. */
  readonly eraseUsage: (keyId: string) => Promise<void>;
}

/** A page of keys, newest first. */
export interface KeyPage {
  readonly keys: readonly ConsumerKey[];
  /** Asks for the next page; missing on the last one. */
  readonly nextCursor?: string;
}

/** All there is to know of one key, but its usage. */
export interface KeyDetail {
  readonly key: ConsumerKey;
  /** The secret, or asterisks where it is not to be shown again. */
  readonly secret: string;
  readonly grant: KeyGrant;
}

/**
 * Makes, shows, changes and deletes keys. A change holds on every replica with the next request once its promise is
 * resolved; when it rejects with `StoreUnavailable` it may or may not have been made. Names and dates come in validated.
 */
export class KeyService {
  readonly #options: KeyServiceOptions;
  readonly #makeId: () => string;

  constructor(options: KeyServiceOptions) {
    this.#options = options;
    this.#makeId = keyIdMaker(options.clock, options.random);
  }

  /** Makes a key that the default plan applies to. The secret is given here; see `reveal` for later. */
  async create({
    name,
    expiresAtMs = null,
  }: {
    readonly name: string;
    readonly expiresAtMs?: number | null;
  }): Promise<{
    readonly key: ConsumerKey;
    readonly secret: string;
  }> {
    const { repository, vault, clock, random, keyPrefix, reveal } = this.#options;
    const id = this.#makeId();
    const secret = createSecret(keyPrefix, random);
    const nowMs = clock.nowMs();
    const key = {
      id,
      name,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      enabled: true,
      expiresAtMs,
      planId: null,
    };
    const sealedSecret = reveal === 'once' ? null : vault.seal(id, secret);
    await repository.insert({ ...key, lookup: vault.lookup(secret), sealedSecret });
    return { key, secret };
  }

  /** At most `limit` keys. Throws `invalid_parameter` for a cursor that is not one of ours. */
  async list({ limit, cursor }: { readonly limit: number; readonly cursor?: string }): Promise<KeyPage> {
    const beforeId = cursor === undefined ? undefined : idOfCursor(cursor);
    // One more than asked for tells whether there is a next page.
    const found = await this.#options.repository.list(limit + 1, beforeId);
    const keys = found.slice(0, limit);
    const last = keys.at(-1);
    return found.length > limit && last !== undefined ? { keys, nextCursor: cursorAfter(last.id) } : { keys };
  }

  /** Throws `KeyNotFound`. */
  async detail(keyId: string): Promise<KeyDetail> {
    const { repository, vault, keyPrefix, reveal } = this.#options;
    // What has another form is no key, and may hold what a database refuses.
    const stored = isKeyId(keyId) ? await repository.find(keyId) : undefined;
    if (stored === undefined) {
      throw new KeyNotFound();
    }
    const { key, sealedSecret, grant } = stored;
    const masked = reveal === 'once' || sealedSecret === null;
    return { key, secret: masked ? maskedSecret(keyPrefix) : vault.open(keyId, sealedSecret), grant };
  }

  /** Throws `KeyNotFound`. */
  async update(keyId: string, changes: KeyChanges): Promise<ConsumerKey> {
    const { repository, versions, clock } = this.#options;
    await this.#requireKey(keyId);
    await versions.announce([keyId]);
    const updated = await repository.update(keyId, changes, clock.nowMs());
    if (updated === undefined) {
      throw new KeyNotFound();
    }
    await versions.settle([{ keyId, version: updated.version }]);
    return updated.key;
  }

  /** From now on the plan applies to the key. Throws `KeyNotFound` or `PlanNotFound`. */
  async bind(keyId: string, planId: string): Promise<KeyGrant> {
    const { repository, versions, clock } = this.#options;
    await this.#requireKey(keyId);
    if (!(await repository.planExists(planId))) {
      throw new PlanNotFound();
    }
    await versions.announce([keyId]);
    const grant = await repository.bind(keyId, planId, clock.nowMs());
    if (grant === 'key_not_found') {
      throw new KeyNotFound();
    }
    if (grant === 'plan_not_found') {
      throw new PlanNotFound();
    }
    await versions.settle([{ keyId, version: grant.version }]);
    return grant;
  }

  /** The key's secret is refused from now on, its counters and its usage are gone. Throws `KeyNotFound`. */
  async remove(keyId: string): Promise<void> {
    const { repository, versions, eraseUsage } = this.#options;
    await this.#requireKey(keyId);
    await versions.announce([keyId]);
    if (!(await repository.delete(keyId))) {
      throw new KeyNotFound();
    }
    await versions.retire(keyId);
    await eraseUsage(keyId);
  }

  /** Not by its grant: a key whose plan does not exist can be changed all the same. */
  async #requireKey(keyId: string): Promise<void> {
    if (!isKeyId(keyId) || !(await this.#options.repository.exists(keyId))) {
      throw new KeyNotFound();
    }
  }
}
