import type { DesiredState } from '../../desired-state/desired-state.ts';
import type { SecretRedactor } from '../../keys/secrets/secret-redactor.ts';
import type { Usage } from '../../usage/create-usage.ts';
import type { ReplicaContext } from '../replica-context.ts';
import { wireAudit } from './wire-audit.ts';
import type { RecordChangePaths } from './wire-changes.ts';
import {
  type ConfigurationsIn,
  configurationOfFile,
  type Sealing,
  wireConfigurations,
} from './wire-configurations.ts';
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
  extends Pick<WiredEvents, 'webhooksIn' | 'streams' | 'thresholds' | 'delivering'>,
    Pick<WiredJobs, 'jobsIn'> {
  readonly usage: Usage;
  readonly configurationsIn: ConfigurationsIn;
}

/** Starts preparing the records, and the usage statistics. Upkeep begins once the tables exist. */
export function wireRecordTasks(
  context: ReplicaContext,
  { stores, changes, redactor, desired, ...sealing }: RecordTaskParts,
): RecordTasks {
  const usage = wireUsage(context, stores, redactor);
  const audit = wireAudit(context, stores);
  const { webhooksIn, streams, thresholds, delivering, startDelivering } = wireEvents(context, {
    ...{ ...stores, ...sealing, usage, redactor },
  });
  const { versions } = changes;
  const { jobsIn, startJobs } = wireJobs(context, { ...stores, ...sealing, versions });
  const webhooks = webhooksIn(stores.records);
  const configurationsIn = wireConfigurations(context, stores, { ...sealing, versions, webhooks });
  const configurations = configurationsIn(stores.records, () => {});
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
  return { usage, configurationsIn, jobsIn, webhooksIn, streams, thresholds, delivering };
}
