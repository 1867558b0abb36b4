/** A key and the version that its record now has. */
export interface RecordVersion {
  readonly keyId: string;
  /** As in `KeySnapshot.version`. */
  readonly version: string;
}

/** A deleted key. */
export interface RetiredKey {
  readonly keyId: string;
  /** Of its windows that may be open. Those that are missing here expire. */
  readonly windowNames?: readonly string[] | undefined;
}

/**
 * Milliseconds that a shared version or a tombstone is kept: longer than any replica's reload may take. A cached key is used only while its
 * version is there, so this is also how long a key is served at most while Postgres is down.
 */
export const VERSION_KEPT_MS = 3_600_000;
/** Milliseconds after which a mark of `markStale` expires: longer than any write to the record store may take. */
export const MARK_KEPT_MS = 30_000;

/**
 * The shared versions that every decision compares with the replica's copy, so that a change holds on all
 * replicas with the next request. A change is made in three steps:
 *
 * 1. `markStale` before the record is written: until step 3 (or until 30 s have passed) every copy counts as stale
 *    unless it was read for the request itself, so a crash between the steps can't leave an old copy valid;
 * 2. the record is written to the record store;
 * 3. `publishVersion` with the new versions, or `retire` for a deleted key.
 *
 * If step 2 fails nothing has to be undone: the mark only costs reloads until it expires.
 * `publishVersion` and `retire` resolve once no replica repeats a rejection from before the change. For a key that was just limited,
 * that can take a second.
 *
 * All methods reject with `StoreUnavailable`. `publishVersion` and `retire` also make every replica drop what it has cached of these keys,
 * by the change feed.
 */
export interface SharedVersions {
  markStale(keyIds: readonly string[]): Promise<void>;
  publishVersion(versions: readonly RecordVersion[]): Promise<void>;
  /**
   * Leaves tombstones, so that no old copy is installed again and nothing is counted for the keys. Removes the windows of their customers,
   * and the windows that are named.
   */
  retire(keys: readonly RetiredKey[]): Promise<void>;
  /**
   * Removes a shared version that the record store contradicts, unless it was replaced meanwhile. The next request on each replica then
   * reads the record, and every replica drops what it has cached of the key.
   */
  withdraw(outdated: RecordVersion): Promise<void>;
}

/**
 * The shared versions for the services that change records. No method rejects because the shared versions do not respond: the change is then
 * deferred (see `DeferrableVersions`).
 */
export interface RecordVersions extends SharedVersions {
  /** Publishes the versions of all keys under a changed plan, which come in batches. */
  publishUnder(planId: string, keys: AsyncIterable<readonly RecordVersion[]>): Promise<void>;
}

/** What a key's shared version has to be. */
export interface CommittedVersion {
  readonly keyId: string;
  /** Null: the key is deleted. */
  readonly version: string | null;
}

/** Shared versions that get committed changes later, and possibly more than once. */
export interface RepublishedVersions {
  /**
   * Makes the versions the shared ones, except where a newer one, a tombstone or a mark is there. Resolves with the ids of the keys for which
   * the store did not respond. Never rejects.
   */
  publishNewer(committed: readonly CommittedVersion[]): Promise<ReadonlySet<string>>;
}

const VERSION = /^(\d+)\.(\d+)$/;

/** Whether a version is from a later change than another one. False if either of them is a mark. */
export function isNewerVersion(version: string, other: string): boolean {
  const [, key, plan] = VERSION.exec(version) ?? [];
  const [, otherKey, otherPlan] = VERSION.exec(other) ?? [];
  if (key === undefined || otherKey === undefined) return false;
  return key === otherKey ? Number(plan) > Number(otherPlan) : Number(key) > Number(otherKey);
}

/** Notifies a replica of changed keys, soon but without guarantee: a hint to drop caches, never the source of truth. */
export interface ChangeFeed {
  /** Calls `changed` for each key whose new version was published, or that was retired, on any replica, this one included. */
  onChange(changed: (keyId: string) => void): void;
  /** Calls `reset` when changes may have been missed, because the feed was interrupted: forget everything. */
  onReset(reset: () => void): void;
}
