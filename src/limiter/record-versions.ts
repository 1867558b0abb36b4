/** A key and the version that its record now has. */
export interface RecordVersion {
  readonly keyId: string;
  /** As in `KeyGrant.version`. */
  readonly version: string;
}

/**
 * The shared versions that every decision compares with the replica's copy, so that a change holds on all
 * replicas with the next request. A change is made in three steps:
 *
 * 1. `announce` before the record is written: until it settles (or 30 s have passed) every copy counts as stale
 *    unless it was read for the request itself, so a crash between the steps can't leave an old copy valid;
 * 2. the record is written to the record store;
 * 3. `settle` with the new versions, or `retire` for a deleted key.
 *
 * If step 2 fails nothing has to be undone: the mark only costs reloads until it lapses.
 * All reject with `StoreUnavailable`. `settle` and `retire` also tell every replica, by the change feed, to drop what it
 * remembers of these keys.
 */
export interface RecordVersions {
  announce(keyIds: readonly string[]): Promise<void>;
  settle(versions: readonly RecordVersion[]): Promise<void>;
  /** Removes the key's counters and leaves a tombstone, so that no old copy is installed again. */
  retire(keyId: string): Promise<void>;
}

/** Tells a replica which keys changed, soon but without guarantee: a hint to forget, never the source of truth. */
export interface ChangeFeed {
  /** Calls `changed` for each key that was settled or retired on any replica, this one included. */
  onChange(changed: (keyId: string) => void): void;
  /** Calls `reset` when changes may have been missed, because the feed was interrupted: forget everything. */
  onReset(reset: () => void): void;
}
