import { StoreUnavailable } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { RecordVersion, RecordVersions, SharedVersions } from '../record-versions.ts';
import type { ChangeDeferrals } from './change-deferrals.ts';
import type { ChangedRecord } from './record-changes.ts';

/** What `DeferrableVersions` needs. */
export interface DeferrableVersionsOptions {
  readonly shared: SharedVersions;
  readonly deferrals: Pick<ChangeDeferrals, 'note'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called for each change that the shared versions have. */
  readonly onPublished: (change: ChangedRecord) => void;
  /** Names the part of the shared versions that holds a key: parts fail separately. */
  readonly partOf: (keyId: string) => number;
}

/** How long a part that did not respond is left alone, so that only one change waits for it. Milliseconds. */
const AWAY_MS = 2000;

/**
 * Shared versions for changes that must not wait for them. Where the shared versions do not respond, the change is committed all the same:
 * it is deferred. The record store keeps it for `ChangePublisher`, and replicas find it there (see `ChangeFollower`).
 */
export class DeferrableVersions implements RecordVersions {
  readonly #options: DeferrableVersionsOptions;
  /** Until when parts are left alone, by the monotonic clock. */
  readonly #awayUntilMs = new Map<number, number>();

  constructor(options: DeferrableVersionsOptions) {
    this.#options = options;
  }

  async markStale(keyIds: readonly string[]): Promise<void> {
    const { shared } = this.#options;
    await this.#attempt(keyIds, (reachable) => shared.markStale(reachable));
  }

  async publishVersion(versions: readonly RecordVersion[]): Promise<void> {
    await this.#publish(versions);
  }

  async publishUnder(planId: string, keys: AsyncIterable<readonly RecordVersion[]>): Promise<void> {
    let planVersion = Number.POSITIVE_INFINITY;
    for await (const versions of keys) {
      for (const { version } of versions)
        planVersion = Math.min(planVersion, Number(version.split('.')[1] ?? 0));
      // The publisher takes the plan as a whole.
      if (!(await this.#publish(versions))) return;
    }
    if (Number.isFinite(planVersion))
      this.#options.onPublished({ kind: 'plan', id: planId, version: planVersion });
  }

  async retire(keyId: string, windowNames?: readonly string[]): Promise<void> {
    const { shared, onPublished, deferrals } = this.#options;
    const isRetired = await this.#attempt([keyId], () => shared.retire(keyId, windowNames));
    if (isRetired) onPublished({ kind: 'key', id: keyId, version: null });
    else deferrals.note();
  }

  async withdraw(outdated: RecordVersion): Promise<void> {
    const { shared } = this.#options;
    await this.#attempt([outdated.keyId], () => shared.withdraw(outdated));
  }

  /** To be called when the shared versions respond again. */
  reset(): void {
    this.#awayUntilMs.clear();
  }

  /** Resolves with whether all of the versions are published. */
  async #publish(versions: readonly RecordVersion[]): Promise<boolean> {
    const { shared, onPublished, deferrals } = this.#options;
    const ids = versions.map(({ keyId }) => keyId);
    const arePublished = await this.#attempt(ids, async (reachable) => {
      const isReachable = new Set(reachable);
      const published = versions.filter(({ keyId }) => isReachable.has(keyId));
      await shared.publishVersion(published);
      for (const { keyId, version } of published)
        onPublished({ kind: 'key', id: keyId, version: Number(version.split('.')[0]) });
    });
    if (!arePublished) deferrals.note();
    return arePublished;
  }

  /** Calls the shared versions for those of the keys whose part was not away a moment ago. Resolves with whether that were all, and it succeeded. */
  async #attempt(
    keyIds: readonly string[],
    call: (reachable: readonly string[]) => Promise<void>,
  ): Promise<boolean> {
    const reachable = keyIds.filter((keyId) => !this.#isAway(keyId));
    if (reachable.length === 0) return keyIds.length === 0;
    try {
      await call(reachable);
      return reachable.length === keyIds.length;
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || error.store !== 'redis') throw error;
      this.#leaveAlone(reachable);
      this.#options.log.debug({ reason: error.reason }, 'a change could not be published at once');
      return false;
    }
  }

  #isAway(keyId: string): boolean {
    if (this.#awayUntilMs.size === 0) return false;
    const untilMs = this.#awayUntilMs.get(this.#options.partOf(keyId)) ?? Number.NEGATIVE_INFINITY;
    return this.#options.clock.monotonicMs() < untilMs;
  }

  #leaveAlone(keyIds: readonly string[]): void {
    const untilMs = this.#options.clock.monotonicMs() + AWAY_MS;
    for (const keyId of keyIds) this.#awayUntilMs.set(this.#options.partOf(keyId), untilMs);
  }
}
