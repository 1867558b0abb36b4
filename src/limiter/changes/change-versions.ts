import type { UnitOfWork } from '../../platform/unit-of-work.ts';
import type { RecordVersion, RecordVersions, RetiredKey } from '../record-versions.ts';
import type { DeferrableVersions } from './deferrable-versions.ts';

/** How long after its commit a deferred change is in force on every replica, at most. Seconds. */
export const APPLIES_WITHIN_S = 3;

/** What `ChangeVersions` is built from. */
export interface ChangeVersionsOptions {
  readonly versions: DeferrableVersions;
  /** In which the records are written. */
  readonly unit: UnitOfWork;
  /** Called for each change that could not be published to all replicas at once: they find it in the record store, within `APPLIES_WITHIN_S`. */
  readonly onDeferred: () => void;
}

/**
 * The shared versions for the changes of one unit of work. `markStale` runs at once, before the write; all other methods run after the
 * commit, because replicas can't read the write before.
 */
export class ChangeVersions implements RecordVersions {
  readonly #options: ChangeVersionsOptions;

  constructor(options: ChangeVersionsOptions) {
    this.#options = options;
  }

  markStale(keyIds: readonly string[]): Promise<void> {
    return this.#options.versions.markStale(keyIds);
  }

  publishVersion(published: readonly RecordVersion[]): Promise<void> {
    return this.#afterCommit((versions) => versions.publishVersion(published));
  }

  /** The keys are read after the commit. */
  publishUnder(planId: string, keys: AsyncIterable<readonly RecordVersion[]>): Promise<void> {
    return this.#afterCommit((versions) => versions.publishUnder(planId, keys));
  }

  retire(keys: readonly RetiredKey[]): Promise<void> {
    return this.#afterCommit((versions) => versions.retire(keys));
  }

  withdraw(outdated: RecordVersion): Promise<void> {
    const { versions, unit } = this.#options;
    return unit.afterCommit(() => versions.withdraw(outdated));
  }

  #afterCommit(publish: (versions: DeferrableVersions) => Promise<boolean>): Promise<void> {
    const { versions, unit, onDeferred } = this.#options;
    return unit.afterCommit(async () => {
      if (!(await publish(versions))) onDeferred();
    });
  }
}
