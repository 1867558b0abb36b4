import { type RawBuilder, sql } from 'kysely';
import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from '../../../usage/cap-names.ts';
import type { PendingRow, SeriesSelection } from '../../../usage/series/series-store.ts';
import { shardOf } from '../../../usage/shards.ts';

/**
 * A key's pending counts in the shape of the stored rows, without those that the history has. To be part of the statement that reads the
 * stored rows: in one snapshot, each count is either stored or pending.
 */
export function pendingTable(keyId: string, { source, pending }: SeriesSelection): RawBuilder<unknown> {
  const each = (column: (row: PendingRow) => string | number) => pending.map(column);
  return sql`
    SELECT ${keyId}::text AS key_id, at, ${nameIn(source, keyId)} AS name, plan_id,
      requests, successful, forwarded, forwarded_us, rate_limited, client_errors, server_errors, shadow_limited
    FROM unnest(
      ${each((row) => row.source)}::text[], ${each((row) => row.batchId)}::bigint[],
      ${each((row) => new Date(row.atMs).toISOString())}::timestamptz[],
      ${each((row) => row.planId)}::text[], ${each((row) => row.name)}::text[],
      ${each((row) => row.counts.requests)}::bigint[], ${each((row) => row.counts.successful)}::bigint[],
      ${each((row) => row.counts.forwarded)}::bigint[], ${each((row) => row.counts.forwardedUs)}::bigint[],
      ${each((row) => row.counts.rateLimited)}::bigint[], ${each((row) => row.counts.clientErrors)}::bigint[],
      ${each((row) => row.counts.serverErrors)}::bigint[], ${each((row) => row.counts.shadowLimited)}::bigint[]
    ) AS pending (source, batch, at, plan_id, name,
      requests, successful, forwarded, forwarded_us, rate_limited, client_errors, server_errors, shadow_limited)
    WHERE batch > coalesce(
      (SELECT last_batch FROM usage_shards WHERE shard = ${shardOf(keyId)} AND usage_shards.source = pending.source), 0)`;
}

/** A new name for which the key's list has no place left will be summed under `__other__`. */
function nameIn(source: SeriesSelection['source'], keyId: string): RawBuilder<unknown> {
  const list = source === 'endpointDays' ? 'usage_by_endpoint' : 'usage_by_customer';
  const [count, most] =
    source === 'endpointDays' ? ['endpoints', MAX_ENDPOINTS] : ['customers', MAX_CUSTOMERS];
  if (source === 'hours' || source === 'totalHours') return sql`name`;
  return sql`CASE
    WHEN EXISTS (SELECT 1 FROM ${sql.table(list)} AS list WHERE list.key_id = ${keyId} AND list.name = pending.name)
      OR coalesce((SELECT ${sql.ref(count)} FROM usage_totals WHERE key_id = ${keyId}), 0) < ${most}
    THEN name ELSE ${OTHER} COLLATE "C" END`;
}
