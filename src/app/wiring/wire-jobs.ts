import { BulkJobs } from '../../jobs/bulk-jobs.ts';
import { JobRunner } from '../../jobs/job-runner.ts';
import { JobTask } from '../../jobs/job-task.ts';
import { KeyService } from '../../keys/key-service.ts';
import type { SecretVault } from '../../keys/secrets/secret-vault.ts';
import type { RecordVersions } from '../../limiter/record-versions.ts';
import { VersionsAfterCommit } from '../../limiter/versions-after-commit.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';

/** Jobs as the rest of the replica uses them. */
export interface WiredJobs {
  readonly jobs: BulkJobs;
  /** Call it once the tables exist. */
  readonly startJobs: () => void;
}

interface JobParts {
  readonly records: Records;
  readonly versions: RecordVersions;
  readonly vault: SecretVault;
}

/** Builds the changes of many keys at once. */
export function wireJobs(context: ReplicaContext, { records, versions, vault }: JobParts): WiredJobs {
  const { settings, platform, shutdown } = context;
  const { clock, random, log } = platform;
  const { jobs: store, keys: repository, keyList, adminTokens: tokens, unitOfWork } = records;
  const { keyPrefix, secretReveal: reveal } = settings;
  const keys = new KeyService({
    ...{ repository, keyList, vault, clock, random, keyPrefix, reveal },
    versions: new VersionsAfterCommit(versions, unitOfWork),
  });
  const holder = random.bytes(12).toString('base64url');
  const runner = new JobRunner({ store, keys, tokens, unitOfWork, clock, log, holder });
  const task = new JobTask({ runner, store, holder, clock, log });
  shutdown.add('jobs', CLOSE_DEADLINE_MS, () => task.stop());
  const wake = (): void => task.wake();
  const jobs = new BulkJobs({ store, keyList, keys: repository, unitOfWork, clock, random, wake });
  return { jobs, startJobs: () => task.start() };
}
