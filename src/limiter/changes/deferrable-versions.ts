import { StoreUnavailable } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { RecordVersion, RetiredKey, SharedVersions } from '../record-versions.ts';
import type { ChangedRecord } from './record-changes.ts';

/** What `DeferrableVersions` needs. */
export interface DeferrableVersionsOptions {
  readonly shared: SharedVersions;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called for each change that the shared versions have. */
  readonly onPublished: (change: ChangedRecord) => void;
  /** Names the part of the shared versions that holds a key: parts fail separately. */
  readonly partOf: (keyId: string) => number;
}

/** How long a part that did not respond is left alone, so that only one change waits for it. Milliseconds. */
const AWAY_MS = 2000;
/** Parts whose calls are under way together. Without a cluster there is one, which takes all keys with one call. */
const CALLED_AT_ONCE = 500;

/**
 * Shared versions for changes that must not wait for them. Where the shared versions do not respond, the change is committed all the same:
 * it is deferred. The record store keeps it for `ChangePublisher`, and replicas find it there (see `ChangeFollower`). Methods that publish
 * resolve with false for a deferred change.
 */
export class DeferrableVersions {
  readonly #options: DeferrableVersionsOptions;
  /** Until when parts are left alone, by the monotonic clock. */
  readonly #awayUntilMs = new Map<number, number>();

  constructor(options: DeferrableVersionsOptions) {
    this.#options = options;
  }

  /** As `SharedVersions.markStale`. */
  async markStale(keyIds: readonly string[]): Promise<void> {
    const { shared } = this.#options;
    const keys = keyIds.map((keyId) => ({ keyId }));
    await this.#attempt(keys, (reachable) => shared.markStale(reachable.map(({ keyId }) => keyId)));
  }

  /** As `SharedVersions.publishVersion`. */
  publishVersion(versions: readonly RecordVersion[]): Promise<boolean> {
    const { shared, onPublished } = this.#options;
    return this.#attempt(versions, async (reachable) => {
      await shared.publishVersion(reachable);
      for (const { keyId, version } of reachable)
        onPublished({ kind: 'key', id: keyId, version: Number(version.split('.')[0]) });
    });
  }

  /** Publishes the versions of all keys under a changed plan, which come in batches. */
  async publishUnder(planId: string, keys: AsyncIterable<readonly RecordVersion[]>): Promise<boolean> {
    let planVersion = Number.POSITIVE_INFINITY;
    for await (const versions of keys) {
      for (const { version } of versions)
        planVersion = Math.min(planVersion, Number(version.split('.')[1] ?? 0));
      // The publisher takes the plan as a whole.
      if (!(await this.publishVersion(versions))) return false;
    }
    if (Number.isFinite(planVersion))
      this.#options.onPublished({ kind: 'plan', id: planId, version: planVersion });
    return true;
  }

  /** As `SharedVersions.retire`. */
  retire(keys: readonly RetiredKey[]): Promise<boolean> {
    const { shared, onPublished } = this.#options;
    return this.#attempt(keys, async (reachable) => {
      await shared.retire(reachable);
      for (const { keyId } of reachable) onPublished({ kind: 'key', id: keyId, version: null });
    });
  }

  /** As `SharedVersions.withdraw`. */
  async withdraw(outdated: RecordVersion): Promise<void> {
    const { shared } = this.#options;
    await this.#attempt([outdated], () => shared.withdraw(outdated));
  }

  /** To be called when the shared versions respond again. */
  reset(): void {
    this.#awayUntilMs.clear();
  }

  /**
   * Calls the shared versions for those of the keys whose part was not away a moment ago, separately for each part: one that does not
   * respond delays no other. Resolves with whether that were all, and it succeeded.
   */
  async #attempt<Key extends { readonly keyId: string }>(
    keys: readonly Key[],
    call: (reachable: readonly Key[]) => Promise<void>,
  ): Promise<boolean> {
    const { partOf } = this.#options;
    const reachable = keys.filter(({ keyId }) => !this.#isAway(keyId));
    const parts = [...Map.groupBy(reachable, ({ keyId }) => partOf(keyId))];
    for (let start = 0; start < parts.length; start += CALLED_AT_ONCE) {
      const some = parts.slice(start, start + CALLED_AT_ONCE);
      const calls = some.map(([part, ofPart]) => this.#callPart(part, () => call(ofPart)));
      // A change waits once: of the parts that were not called yet, it may be that none responds either.
      if ((await Promise.all(calls)).includes(false)) return false;
    }
    return reachable.length === keys.length;
  }

  async #callPart(part: number, call: () => Promise<void>): Promise<boolean> {
    try {
      await call();
      return true;
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || error.store !== 'redis') throw error;
      const { clock, log } = this.#options;
      this.#awayUntilMs.set(part, clock.monotonicMs() + AWAY_MS);
      log.debug({ reason: error.reason }, 'a change could not be published at once');
      return false;
    }
  }

  #isAway(keyId: string): boolean {
    if (this.#awayUntilMs.size === 0) return false;
    const untilMs = this.#awayUntilMs.get(this.#options.partOf(keyId)) ?? Number.NEGATIVE_INFINITY;
    return this.#options.clock.monotonicMs() < untilMs;
  }
}
