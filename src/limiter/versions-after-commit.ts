import type { UnitOfWork } from '../platform/unit-of-work.ts';
import type { RecordVersion, RecordVersions } from './record-versions.ts';

/**
 * Shared versions for changes in units of work. `markStale` runs at once, before the write; all other methods run after the commit, because
 * replicas can't read the write before.
 */
export class VersionsAfterCommit implements RecordVersions {
  readonly #versions: RecordVersions;
  readonly #unitOfWork: Pick<UnitOfWork, 'afterCommit'>;

  constructor(versions: RecordVersions, unitOfWork: Pick<UnitOfWork, 'afterCommit'>) {
    this.#versions = versions;
    this.#unitOfWork = unitOfWork;
  }

  markStale(keyIds: readonly string[]): Promise<void> {
    return this.#versions.markStale(keyIds);
  }

  publishVersion(versions: readonly RecordVersion[]): Promise<void> {
    return this.#unitOfWork.afterCommit(() => this.#versions.publishVersion(versions));
  }

  /** The keys are read after the commit. */
  publishUnder(planId: string, keys: AsyncIterable<readonly RecordVersion[]>): Promise<void> {
    return this.#unitOfWork.afterCommit(() => this.#versions.publishUnder(planId, keys));
  }

  retire(keyId: string, windowNames?: readonly string[]): Promise<void> {
    return this.#unitOfWork.afterCommit(() => this.#versions.retire(keyId, windowNames));
  }

  withdraw(outdated: RecordVersion): Promise<void> {
    return this.#unitOfWork.afterCommit(() => this.#versions.withdraw(outdated));
  }
}
