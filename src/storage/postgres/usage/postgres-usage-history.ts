import { sql } from 'kysely';
import type { UsageBatch } from '../../../usage/live-usage.ts';
import { shardOf } from '../../../usage/shards.ts';
import type {
  ApplyOutcome,
  KeyHistory,
  TotalsHistory,
  UsageHistory,
  UsageRetention,
} from '../../../usage/usage-history.ts';
import { noCounts } from '../../../usage/usage-slice.ts';
import { earlierNowMs } from '../earlier-now.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { runEach } from '../run-each.ts';
import { isRolledBack } from '../unavailability.ts';
import { applyUsageBatch, SHARD_LOCKS } from './apply-usage-batch.ts';
import { deleteBefore, partitionSteps, startOfMonth } from './usage-partitions.ts';
import { countsOfRow } from './usage-rows.ts';

/** Attempts at a transaction that Postgres rolls back for another one. */
const ATTEMPTS = 3;
/** Stands for the shard in rows of a key. */
const OF_A_KEY = -1;

interface KeyRow {
  readonly list: 'ids' | 'totals' | 'endpoints' | 'customers';
  readonly name: string;
  readonly last_batch: number;
  readonly requests: number;
  readonly successful: number;
  readonly forwarded: number;
  readonly forwarded_us: number;
  readonly last_used_at: Date | null;
}

/** A row of `readTotals`: of a shard and a data set, or of a key. */
interface TotalsRow extends Omit<KeyRow, 'list'> {
  readonly shard: number | null;
}

/** Usage in Postgres, on a server or embedded. */
export class PostgresUsageHistory implements UsageHistory {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  apply(batch: UsageBatch, requireHeld = () => {}): Promise<ApplyOutcome> {
    return this.#applyAsOften(batch, requireHeld, ATTEMPTS);
  }

  async hasWrite(shard: number, writer: string, sequence: number): Promise<boolean> {
    // Waits for a transaction that is adding to the shard, because the write may be in it. The lock ends with this statement, so that
    // no transaction waits for this process.
    await sql`SELECT pg_advisory_xact_lock_shared(${SHARD_LOCKS}, ${shard})`.execute(this.#db);
    // A separate statement: the one above sees nothing that was committed after it began to wait.
    const { rows } = await sql<{ last_sequence: number }>`
      SELECT last_sequence FROM usage_writers
      WHERE shard = ${shard} AND writer = ${writer} AND last_sequence >= ${sequence}`.execute(this.#db);
    return rows.length > 0;
  }

  async read(keyId: string): Promise<KeyHistory> {
    // One statement, hence one snapshot: the ids of the last batches and the sums that they are part of.
    const { rows } = await sql<KeyRow>`
      SELECT 'ids' AS list, source AS name, last_batch, 0::bigint AS requests, 0::bigint AS successful,
        0::bigint AS forwarded, 0::bigint AS forwarded_us, NULL::timestamptz AS last_used_at
      FROM usage_shards WHERE shard = ${shardOf(keyId)}
      UNION ALL
      SELECT 'totals', '', 0, requests, successful, forwarded, forwarded_us, last_used_at
      FROM usage_totals WHERE key_id = ${keyId}
      UNION ALL
      SELECT 'endpoints', name, 0, requests, successful, forwarded, forwarded_us, NULL
      FROM usage_by_endpoint WHERE key_id = ${keyId}
      UNION ALL
      SELECT 'customers', name, 0, requests, successful, forwarded, forwarded_us, NULL
      FROM usage_by_customer WHERE key_id = ${keyId}`.execute(this.#db);
    const listed = (list: KeyRow['list']) => rows.filter((row) => row.list === list);
    const named = (list: KeyRow['list']) =>
      new Map(listed(list).map((row) => [row.name, countsOfRow(row)] as const));
    const totals = listed('totals')[0];
    const lastIds = new Map(listed('ids').map((row) => [row.name, row.last_batch] as const));
    return {
      lastIds,
      totals: totals === undefined ? noCounts() : countsOfRow(totals),
      lastUsedAtMs: totals?.last_used_at?.getTime() ?? null,
      endpoints: named('endpoints'),
      customers: named('customers'),
    };
  }

  async readTotals(keyIds: readonly string[]): Promise<TotalsHistory> {
    const shards = [...new Set(keyIds.map(shardOf))];
    // One statement, hence one snapshot, as in `read`.
    const { rows } = await sql<TotalsRow>`
      SELECT shard, source AS name, last_batch, 0::bigint AS requests, 0::bigint AS successful,
        0::bigint AS forwarded, 0::bigint AS forwarded_us, NULL::timestamptz AS last_used_at
      FROM usage_shards WHERE shard = ANY (${shards}::smallint[])
      UNION ALL
      SELECT NULL, key_id, 0, requests, successful, forwarded, forwarded_us, last_used_at
      FROM usage_totals WHERE key_id = ANY (${keyIds}::text[])`.execute(this.#db);
    const ofShards = Map.groupBy(rows, ({ shard }) => shard ?? OF_A_KEY);
    const ofKeys = ofShards.get(OF_A_KEY) ?? [];
    ofShards.delete(OF_A_KEY);
    return {
      lastIds: new Map(
        [...ofShards].map(([shard, ids]) => [shard, new Map(ids.map((row) => [row.name, row.last_batch]))]),
      ),
      keys: new Map(
        ofKeys.map((row) => [
          row.name,
          {
            totals: countsOfRow(row),
            lastUsedAtMs: row.last_used_at?.getTime() ?? null,
          },
        ]),
      ),
    };
  }

  async prune(
    { nowMs: replicaNowMs, hoursKeptMs, daysKeptMs }: UsageRetention,
    goesOn?: () => boolean,
  ): Promise<void> {
    const nowMs = await earlierNowMs(this.#db, replicaNowMs);
    const daysSinceMs = nowMs - daysKeptMs;
    // The hours of all keys together are fewer rows. They are kept as long as the longer of hours and days, of which they are the sums.
    const totalsSince = startOfMonth(nowMs - Math.max(hoursKeptMs, daysKeptMs));
    await runEach([
      ...(await partitionSteps(this.#db, { nowMs, hoursSinceMs: nowMs - hoursKeptMs, daysSinceMs }, goesOn)),
      // Redis forgets a writer that wrote nothing for a day, and the writer has long given up its last write.
      () => sql`DELETE FROM usage_writers WHERE moved_at < now() - interval '7 days'`.execute(this.#db),
      () => deleteBefore(this.#db, { table: 'usage_total_hours', column: 'hour', goesOn }, totalsSince),
    ]);
  }

  async #applyAsOften(batch: UsageBatch, requireHeld: () => void, attempts: number): Promise<ApplyOutcome> {
    try {
      return await this.#db
        .transaction()
        .execute((transaction) => applyUsageBatch(transaction, batch, requireHeld));
    } catch (error) {
      if (!isRolledBack(error) || attempts <= 1) throw error;
      return this.#applyAsOften(batch, requireHeld, attempts - 1);
    }
  }
}
