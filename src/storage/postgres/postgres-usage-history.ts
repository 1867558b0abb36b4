import { sql } from 'kysely';
import type { OnFlushStep } from '../../usage/flush-steps.ts';
import type { UsageBatch } from '../../usage/live-usage.ts';
import type { ApplyOutcome, KeyHistory, UsageHistory } from '../../usage/usage-history.ts';
import { type Counts, noUsage, type UsageSums } from '../../usage/usage-sums.ts';
import { applyUsageBatches } from './apply-usage-batches.ts';
import type { RecordsDatabase } from './records-database.ts';
import { type CountColumns, countsOfColumns } from './usage-tables.ts';

/** Serialization failure, deadlock: Postgres undid the transaction and asks for it again. */
const ASKED_AGAIN = new Set(['40001', '40P01']);
const ATTEMPTS = 3;

/** Usage in Postgres, on a server or embedded. */
export class PostgresUsageHistory implements UsageHistory {
  readonly #db: RecordsDatabase;
  readonly #onStep: OnFlushStep;

  constructor(db: RecordsDatabase, onStep: OnFlushStep = () => {}) {
    this.#db = db;
    this.#onStep = onStep;
  }

  async apply(batches: readonly UsageBatch[]): Promise<readonly ApplyOutcome[]> {
    const outcomes = await this.#applyAsOften(batches, ATTEMPTS);
    this.#onStep('committed');
    return batches.map((batch) => outcomes.get(batch) ?? { kind: 'key_gone' });
  }

  async read(keyId: string): Promise<KeyHistory> {
    // One statement, hence one snapshot: the id of the last batch and the sums that it is part of.
    const { rows } = await sql<CountColumns & { list: string; name: string; last_batch: number }>`
      SELECT 'totals' AS list, '' AS name, last_batch, requests, successful, forwarded, forwarded_us
      FROM usage_totals WHERE key_id = ${keyId}
      UNION ALL
      SELECT 'endpoints', name, 0, requests, successful, forwarded, forwarded_us
      FROM usage_by_endpoint WHERE key_id = ${keyId}
      UNION ALL
      SELECT 'customers', name, 0, requests, successful, forwarded, forwarded_us
      FROM usage_by_customer WHERE key_id = ${keyId}`.execute(this.#db);
    const totals = rows.find((row) => row.list === 'totals');
    if (totals === undefined) return { lastId: 0, sums: noUsage() };
    const sums: UsageSums = { ...noUsage(), totals: countsOfColumns(totals) };
    for (const row of rows) {
      if (row.list === 'endpoints') sums.endpoints.set(row.name, countsOfColumns(row));
      if (row.list === 'customers') sums.customers.set(row.name, countsOfColumns(row));
    }
    return { lastId: totals.last_batch, sums };
  }

  async readHours(keyId: string, sinceHour: number): Promise<{ lastId: number; hours: Map<number, Counts> }> {
    const { rows } = await sql<CountColumns & { last_batch: number; hour: number | null }>`
      SELECT last_batch, (extract(epoch FROM by_hour.hour) / 3600)::integer AS hour,
        by_hour.requests, by_hour.successful, by_hour.forwarded, by_hour.forwarded_us
      FROM usage_totals LEFT JOIN usage_by_hour AS by_hour
        ON by_hour.key_id = usage_totals.key_id AND by_hour.hour >= to_timestamp(${sinceHour}::double precision * 3600)
      WHERE usage_totals.key_id = ${keyId} ORDER BY by_hour.hour`.execute(this.#db);
    const hours = new Map<number, Counts>();
    for (const row of rows) {
      if (row.hour !== null) hours.set(row.hour, countsOfColumns(row));
    }
    return { lastId: rows[0]?.last_batch ?? 0, hours };
  }

  async erase(keyId: string): Promise<void> {
    await sql`DELETE FROM usage_totals WHERE key_id = ${keyId}`.execute(this.#db);
  }

  async prune(hour: number, limit: number): Promise<number> {
    // Rows that another replica is removing are left to it.
    const { numAffectedRows = 0n } = await sql`
      DELETE FROM usage_by_hour WHERE (key_id, hour) IN (
        SELECT key_id, hour FROM usage_by_hour WHERE hour < to_timestamp(${hour}::double precision * 3600)
        LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )`.execute(this.#db);
    return Number(numAffectedRows);
  }

  async #applyAsOften(
    batches: readonly UsageBatch[],
    attempts: number,
  ): Promise<ReadonlyMap<UsageBatch, ApplyOutcome>> {
    try {
      return await this.#db
        .transaction()
        .execute((transaction) => applyUsageBatches(transaction, batches, this.#onStep));
    } catch (error) {
      const isAskedAgain = error instanceof Error && 'code' in error && ASKED_AGAIN.has(String(error.code));
      if (!isAskedAgain || attempts <= 1) throw error;
      return this.#applyAsOften(batches, attempts - 1);
    }
  }
}
