import { BulkJobs } from '../../jobs/bulk-jobs.ts';
import { JobRunner, type JobRunnerOptions } from '../../jobs/job-runner.ts';
import { JobTask } from '../../jobs/job-task.ts';
import { keyIdMaker } from '../../keys/key-id.ts';
import { KeyService } from '../../keys/key-service.ts';
import { ChangeVersions } from '../../limiter/changes/change-versions.ts';
import type { DeferrableVersions } from '../../limiter/changes/deferrable-versions.ts';
import { idMaker } from '../../platform/id-maker.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import type { RecordScope } from '../../storage/postgres/record-units.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';

/** Jobs as the rest of the replica uses them. */
export interface WiredJobs {
  /** The service of jobs, in the record store or in a unit of work. */
  readonly jobsIn: (scope: RecordScope) => BulkJobs;
  /** Call it once the tables exist. */
  readonly startJobs: () => void;
}

interface JobParts {
  readonly records: Records;
  readonly versions: DeferrableVersions;
  readonly vault: SecretVault;
}

/** Builds the changes of many keys at once. */
export function wireJobs(context: ReplicaContext, { records, versions, vault }: JobParts): WiredJobs {
  const { settings, platform, shutdown } = context;
  const { clock, random, log } = platform;
  const { jobs: store } = records;
  const { keyPrefix, secretReveal: reveal } = settings;
  const parts = { vault, clock, random, makeId: keyIdMaker(clock, random), keyPrefix, reveal };
  const keysIn = (unit: RecordScope) =>
    new KeyService({
      ...parts,
      repository: unit.keys,
      keyList: unit.keyList,
      // Replicas find a deferred change soon; no response waits for it.
      versions: new ChangeVersions({ versions, unit, onDeferred: () => {} }),
    });
  const inUnit: JobRunnerOptions['inUnit'] = (work) =>
    records.inUnit((unit) =>
      work({
        jobs: unit.jobs,
        tokens: unit.adminTokens,
        people: unit.sessions,
        attempt: (change) => unit.attempt(() => change(keysIn(unit))),
      }),
    );
  const holder = random.bytes(12).toString('base64url');
  const runner = new JobRunner({ store, inUnit, clock, log, holder });
  const task = new JobTask({ runner, store, holder, clock, log });
  shutdown.add('jobs', CLOSE_DEADLINE_MS, () => task.stop());
  const making = { makeId: idMaker('job_', clock, random), wake: (): void => task.wake() };
  const jobsIn = (unit: RecordScope) =>
    new BulkJobs({ ...making, store: unit.jobs, keyList: unit.keyList, keys: unit.keys, unit });
  return { jobsIn, startJobs: () => task.start() };
}
