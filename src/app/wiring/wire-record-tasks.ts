import type { DesiredState } from '../../desired-state/desired-state.ts';
import type { DesiredStateService } from '../../desired-state/desired-state-service.ts';
import type { SecretRedactor } from '../../keys/secrets/secret-redactor.ts';
import type { Usage } from '../../usage/create-usage.ts';
import type { ReplicaContext } from '../replica-context.ts';
import { wireAudit } from './wire-audit.ts';
import type { RecordChangePaths } from './wire-changes.ts';
import { configurationOfFile, type Sealing, wireConfigurations } from './wire-configurations.ts';
import { type WiredEvents, wireEvents } from './wire-events.ts';
import { type WiredJobs, wireJobs } from './wire-jobs.ts';
import type { Stores } from './wire-stores.ts';
import { wireUsage } from './wire-usage.ts';

/** What the tasks on the records are built from. */
export interface RecordTaskParts extends Sealing {
  readonly stores: Stores;
  readonly changes: Pick<RecordChangePaths, 'versions' | 'prepared'>;
  readonly redactor: SecretRedactor;
  /** The content of `CONFIG_FILE`; undefined if it is not set. */
  readonly desired: DesiredState | undefined;
}

/** The tasks that other parts of the replica use. */
export interface RecordTasks
  extends Pick<WiredEvents, 'webhooks' | 'streams' | 'delivering'>,
    Pick<WiredJobs, 'jobs'> {
  readonly usage: Usage;
  readonly configurations: DesiredStateService;
}

/** Starts preparing the records, and the usage statistics. Upkeep begins once the tables exist. */
export function wireRecordTasks(
  context: ReplicaContext,
  { stores, changes, redactor, desired, ...sealing }: RecordTaskParts,
): RecordTasks {
  const usage = wireUsage(context, stores, redactor);
  const audit = wireAudit(context, stores);
  const { webhooks, streams, delivering, startDelivering } = wireEvents(context, {
    ...{ ...stores, ...sealing, usage },
  });
  const { versions } = changes;
  const { jobs, startJobs } = wireJobs(context, { ...stores, ...sealing, versions });
  const configurations = wireConfigurations(context, stores, { ...sealing, versions, webhooks });
  stores.preparation.start({
    configure: desired && configurationOfFile(context, configurations, desired),
    prepared: () => {
      usage.startPruning();
      audit.start();
      changes.prepared();
      startDelivering();
      startJobs();
    },
  });
  return { usage, configurations, jobs, webhooks, streams, delivering };
}
