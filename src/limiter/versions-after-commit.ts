import type { UnitOfWork } from '../platform/unit-of-work.ts';
import type { RecordVersion, RecordVersions } from './record-versions.ts';

/**
 * Shared versions that suit units of work: copies are made stale at once, before the write; the new version is published when the write can
 * be read.
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

  retire(keyId: string, windowNames?: readonly string[]): Promise<void> {
    return this.#unitOfWork.afterCommit(() => this.#versions.retire(keyId, windowNames));
  }

  withdraw(outdated: RecordVersion): Promise<void> {
    return this.#unitOfWork.afterCommit(() => this.#versions.withdraw(outdated));
  }
}
