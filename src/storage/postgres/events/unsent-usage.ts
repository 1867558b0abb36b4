import { sql } from 'kysely';
import { addUnder, type Counts, type UsageSlice } from '../../../usage/usage-slice.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { textArray } from '../usage/text-array.ts';

/** Whether a webhook or a stream hears usage: a condition on `audit_log_ends`. */
export const IS_USAGE_HEARD = sql<boolean>`(hears_usage OR coalesce(usage_streamed_until > now(), false))`;

const COLUMNS = {
  requests: 'requests',
  successful: 'successful',
  rate_limited: 'rateLimited',
  units: 'units',
  bytes_in: 'bytesIn',
  bytes_out: 'bytesOut',
} as const satisfies Readonly<Record<string, keyof Counts>>;

const HOUR_MS = 3_600_000;
/** A sum is exact in JSON up to here, and two of them fit into the column: a backend that reports huge costs must not hold up usage. */
const MOST = Number.MAX_SAFE_INTEGER;

/** Adds usage of keys, in the transaction that adds it to their hours, to what the next events say. */
export async function addUnsent(
  db: RecordsDatabase,
  keys: readonly { readonly keyId: string; readonly slices: readonly UsageSlice[] }[],
): Promise<void> {
  const hours: string[] = [];
  const keyIds: string[] = [];
  const counts: Readonly<Counts>[] = [];
  for (const { keyId, slices } of keys) {
    // Plans do not matter: a statement must not change a row twice.
    const byHour = new Map<number, Counts>();
    for (const slice of slices) for (const [hour, added] of slice.hours) addUnder(byHour, hour, added);
    for (const [hour, sum] of byHour) {
      hours.push(new Date(hour * HOUR_MS).toISOString());
      keyIds.push(keyId);
      counts.push(sum);
    }
  }
  const names = Object.keys(COLUMNS);
  const values = Object.values(COLUMNS).map(
    (name) => sql`${`{${counts.map((each) => Math.min(each[name], MOST)).join(',')}}`}::bigint[]`,
  );
  // In the order of the primary key: transactions may wait for each other, but never deadlock.
  await sql`
    INSERT INTO usage_unsent AS stored (hour, key_id, ${sql.raw(names.join(', '))})
    SELECT * FROM unnest(${textArray(hours)}::timestamptz[], ${textArray(keyIds)}::text[], ${sql.join(values)})
      AS added (hour, key_id) ORDER BY hour, key_id
    ON CONFLICT (hour, key_id) DO UPDATE
    SET ${sql.raw(names.map((name) => `${name} = least(stored.${name} + excluded.${name}, ${MOST})`).join(', '))}`.execute(
    db,
  );
}
