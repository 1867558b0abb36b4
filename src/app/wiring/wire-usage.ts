import type { SecretRedactor } from '../../keys/secrets/secret-redactor.ts';
import type { Records } from '../../storage/postgres/open-records.ts';
import { PostgresSeriesStore } from '../../storage/postgres/usage/postgres-series-store.ts';
import { PostgresUsageHistory } from '../../storage/postgres/usage/postgres-usage-history.ts';
import { createUsage, type Usage } from '../../usage/create-usage.ts';
import { UsageSeries } from '../../usage/series/usage-series.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { Counting } from '../stores/counting.ts';
import type { Stores } from './wire-stores.ts';

/** The longest that the last usage is written for at the stop. Milliseconds. */
const WRITE_DEADLINE_MS = 5000;

/** Starts the usage statistics. Old ones are pruned once the record store has its tables. */
export function wireUsage(
  { settings, platform, shutdown }: ReplicaContext,
  { records, counting }: Stores,
  redactor: SecretRedactor,
): Usage {
  const usage = createUsage({
    mask: (text) => redactor.masked(text),
    live: counting.liveUsage,
    history: new PostgresUsageHistory(records.db),
    flushEveryMs: settings.usageFlushMs,
    retentionDays: settings.usageRetentionDays,
    dailyRetentionDays: settings.usageDailyRetentionDays,
    ...platform,
  });
  shutdown.add('usage', 2 * WRITE_DEADLINE_MS, async () => {
    if (!(await usage.stop(WRITE_DEADLINE_MS))) throw new Error('not all usage was written');
  });
  usage.start();
  return usage;
}

/** What usage over time is read from. */
export interface SeriesParts {
  readonly records: Pick<Records, 'db'>;
  readonly counting: Pick<Counting, 'shared'>;
  readonly usage: Pick<Usage, 'pending'>;
}

/** Builds what reads usage over time. */
export function usageSeries(
  { settings, platform }: Pick<ReplicaContext, 'settings' | 'platform'>,
  { records, counting, usage }: SeriesParts,
): UsageSeries {
  return new UsageSeries({
    store: new PostgresSeriesStore(records.db),
    clock: platform.clock,
    retentionDays: settings.usageRetentionDays,
    dailyRetentionDays: settings.usageDailyRetentionDays,
    pending: usage.pending,
    outages: () => counting.shared?.redis.replicas.outages ?? [],
  });
}
