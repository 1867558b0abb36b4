import type { SecretRedactor } from '../../keys/secrets/secret-redactor.ts';
import { PostgresUsageHistory } from '../../storage/postgres/usage/postgres-usage-history.ts';
import { createUsage, type Usage } from '../../usage/create-usage.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';
import type { Stores } from './wire-stores.ts';

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
  shutdown.add('usage', 2 * CLOSE_DEADLINE_MS, async () => {
    if (!(await usage.stop(CLOSE_DEADLINE_MS))) throw new Error('not all usage was written');
  });
  usage.start();
  return usage;
}
