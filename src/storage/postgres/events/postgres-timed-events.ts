import { sql } from 'kysely';
import type { OutboxEvent } from '../../../events/outbox-event.ts';
import type { ExpiringKey, ExpiryNotice } from '../../../events/timed/expiry-events.ts';
import type { Subscribers, TimedEventStore } from '../../../events/timed/timed-events.ts';
import { MOST_CUSTOMERS, type UnsentUsage } from '../../../events/timed/usage-hour-events.ts';
import { OTHER } from '../../../usage/cap-names.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { appendEvents, IS_HEARD } from './outbox.ts';
import { lockedEnd, noteListeners } from './postgres-webhook-repository.ts';
import { IS_USAGE_AWAITED, IS_USAGE_HEARD, IS_USAGE_KEPT } from './unsent-usage.ts';

/** Events that are made in one transaction. */
const EVENTS_AT_ONCE = 500;
/** Usage that is forgotten in one statement: a key may have a thousand customers in an hour. */
const FORGOTTEN_AT_ONCE = 500;
/** Keys that expire are looked at so late that a change which is under way is committed. Seconds. */
const EXPIRY_LAG_S = 15;
/** Sorts after all ids. */
const AFTER_ALL_IDS = '~';
const HOUR_MS = 3_600_000;

interface ExpiryPosition {
  readonly at: Date;
  readonly key_id: string;
}

interface UsageRow {
  readonly hour: Date;
  readonly key_id: string;
  readonly external_id: string | null;
  readonly tags: readonly string[];
  readonly requests: number;
  readonly successful: number;
  readonly rate_limited: number;
  readonly units: number;
  readonly bytes_in: number;
  readonly bytes_out: number;
  /** Null: none is known. */
  readonly customers: UnsentUsage['customers'] | null;
}

/** The sources of timed events in Postgres. By the clock of the database: those of replicas may differ. */
export class PostgresTimedEvents implements TimedEventStore {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  subscribers(): Promise<Subscribers> {
    return this.#db
      .selectFrom('audit_log_ends')
      .select([IS_HEARD.as('any'), IS_USAGE_HEARD.as('usage')])
      .executeTakeFirstOrThrow();
  }

  passExpiries(
    notice: ExpiryNotice,
    make: (keys: readonly ExpiringKey[]) => readonly OutboxEvent[],
  ): Promise<boolean> {
    return this.#alone(async (trx) => {
      const position = await expiryPosition(trx, notice);
      const beforeS = notice.beforeMs / 1000;
      const { rows } = await sql<
        ExpiryPosition & { name: string; external_id: string | null; tags: string[] }
      >`
        SELECT expires_at AS at, id AS key_id, name, external_id, tags FROM consumer_keys
        WHERE (coalesce(expires_at, 'infinity'), id) > (${position.at}::timestamptz + make_interval(secs => ${beforeS}), ${position.key_id})
          AND coalesce(expires_at, 'infinity') <= ${EXPIRY_LIMIT} + make_interval(secs => ${beforeS})
        ORDER BY coalesce(expires_at, 'infinity'), id LIMIT ${EVENTS_AT_ONCE}`.execute(trx);
      const last = rows.length === EVENTS_AT_ONCE ? rows.at(-1) : undefined;
      const reached =
        last === undefined
          ? { at: EXPIRY_LIMIT, key_id: AFTER_ALL_IDS }
          : { at: new Date(last.at.getTime() - notice.beforeMs), key_id: last.key_id };
      await trx.updateTable('key_expiry_progress').set(reached).where('kind', '=', notice.name).execute();
      const keys = rows.map(({ key_id: keyId, at, external_id: externalId, ...row }) => ({
        ...{ keyId, externalId, ...row, expiresAtMs: at.getTime() },
      }));
      await appendEvents(trx, make(keys));
      return last !== undefined;
    });
  }

  passUsage(
    beforeMs: number,
    make: (usage: readonly UnsentUsage[]) => readonly OutboxEvent[],
  ): Promise<boolean> {
    const lastHour = new Date((Math.floor(beforeMs / HOUR_MS) - 1) * HOUR_MS);
    const made = this.#alone(async (trx) => {
      const { usage_hour, usage_key } = await trx
        .selectFrom('audit_log_ends')
        .select(['usage_hour', 'usage_key'])
        .executeTakeFirstOrThrow();
      const passed = { hourMs: usage_hour?.getTime() ?? Number.NEGATIVE_INFINITY, keyId: usage_key };
      const rows = await takeUnsent(trx, lastHour);
      const usage = rows.map((row) => unsentOf(row, passed));
      const isEnd = rows.length < EVENTS_AT_ONCE;
      const last = isEnd ? { hour: lastHour, key_id: AFTER_ALL_IDS } : rows.at(-1);
      if (usage.length > 0) await requireUsageHeard(trx);
      await appendEvents(trx, make(usage));
      const isFurther = last !== undefined && isAfter(last.hour.getTime(), last.key_id, passed);
      if (isFurther)
        await trx
          .updateTable('audit_log_ends')
          .set({ usage_hour: last.hour, usage_key: last.key_id })
          .execute();
      return !isEnd;
    });
    return made.catch((error: unknown) => {
      if (error instanceof UsageUnheard) return false;
      throw error;
    });
  }

  async forgetExpiries(): Promise<void> {
    // Looks again whether anything is heard: a stream may have been opened since.
    await sql`DELETE FROM key_expiry_progress USING audit_log_ends WHERE NOT ${IS_HEARD}`.execute(this.#db);
  }

  async forgetUsage(): Promise<boolean> {
    const { rows: outdated } = await sql`
      SELECT FROM audit_log_ends WHERE hears_usage AND NOT ${IS_USAGE_AWAITED}`.execute(this.#db);
    if (outdated.length > 0) await this.#db.transaction().execute(noteListeners);
    // Looks again whether usage is kept: a webhook may have been made or enabled since.
    const { rows } = await sql<{ removed: number }>`
      WITH gone AS (
        DELETE FROM usage_unsent WHERE ctid IN (
          SELECT usage_unsent.ctid FROM usage_unsent, audit_log_ends WHERE NOT ${IS_USAGE_KEPT}
          LIMIT ${FORGOTTEN_AT_ONCE} FOR UPDATE OF usage_unsent SKIP LOCKED)
        RETURNING hour, key_id
      ), customers AS (
        DELETE FROM usage_unsent_customers USING gone
        WHERE usage_unsent_customers.hour = gone.hour AND usage_unsent_customers.key_id = gone.key_id
      )
      SELECT count(*)::int AS removed FROM gone`.execute(this.#db);
    return rows[0]?.removed === FORGOTTEN_AT_ONCE;
  }

  /** Runs work in a transaction, unless another replica does. Resolves with false then. */
  #alone(work: (trx: RecordsDatabase) => Promise<boolean>): Promise<boolean> {
    return this.#db.transaction().execute(async (trx) => {
      const { rows } = await sql<{ isAlone: boolean }>`
        SELECT pg_try_advisory_xact_lock(${ADVISORY_LOCKS.timedEvents}) AS "isAlone"`.execute(trx);
      return rows[0]?.isAlone === true && work(trx);
    });
  }
}

/** Nothing hears usage any more: rolls the transaction back. */
class UsageUnheard extends Error {}

/**
 * Throws `UsageUnheard`. A change that disables a webhook takes the same lock: the webhook hears the events that are made now, or its usage is
 * not taken. The lock first: the statement after it sees the webhooks of the transaction that held it before.
 */
async function requireUsageHeard(trx: RecordsDatabase): Promise<void> {
  await lockedEnd(trx);
  const end = trx.selectFrom('audit_log_ends').select('last_event').where(IS_USAGE_HEARD);
  if ((await end.executeTakeFirst()) === undefined) throw new UsageUnheard();
}

/** In whole milliseconds, which the column has: it would round up, beyond keys that were not looked at. */
const EXPIRY_LIMIT = sql<Date>`(date_trunc('milliseconds', now()) - make_interval(secs => ${EXPIRY_LAG_S}))`;

/** Up to where keys were looked at; now if they never were. */
async function expiryPosition(trx: RecordsDatabase, { name }: ExpiryNotice): Promise<ExpiryPosition> {
  await trx
    .insertInto('key_expiry_progress')
    .values({ kind: name, at: EXPIRY_LIMIT, key_id: AFTER_ALL_IDS })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return trx
    .selectFrom('key_expiry_progress')
    .select(['at', 'key_id'])
    .where('kind', '=', name)
    .executeTakeFirstOrThrow();
}

/**
 * Removes a page of unsent usage of hours up to one of them, and resolves with it, in order. Rows that usage is being added to are left for
 * later: the lock of the outbox would wait for them. The rows are locked by a statement that comes first: what was added to a row just before
 * its lock is in the second one's snapshot, its customers too.
 */
async function takeUnsent(trx: RecordsDatabase, lastHour: Date): Promise<readonly UsageRow[]> {
  const { rows: page } = await sql<Pick<UsageRow, 'hour' | 'key_id'>>`
    SELECT hour, key_id FROM usage_unsent WHERE hour <= ${lastHour}
    ORDER BY hour, key_id LIMIT ${EVENTS_AT_ONCE} FOR UPDATE SKIP LOCKED`.execute(trx);
  if (page.length === 0) return [];
  const [hours, keyIds] = [page.map(({ hour }) => hour), page.map(({ key_id }) => key_id)];
  const { rows } = await sql<UsageRow>`
    WITH page AS (
      SELECT * FROM unnest(${hours}::timestamptz[], ${keyIds}::text[]) AS locked (hour, key_id)
    ), taken AS (
      DELETE FROM usage_unsent USING page
      WHERE usage_unsent.hour = page.hour AND usage_unsent.key_id = page.key_id RETURNING usage_unsent.*
    ), customers AS (
      DELETE FROM usage_unsent_customers USING page
      WHERE usage_unsent_customers.hour = page.hour AND usage_unsent_customers.key_id = page.key_id
      RETURNING usage_unsent_customers.*
    ), ranked AS (
      SELECT *, row_number() OVER (PARTITION BY hour, key_id ORDER BY requests DESC, customer_id) AS rank
      FROM customers WHERE customer_id <> ${OTHER}
    ), busiest AS (
      SELECT hour, key_id, json_agg(json_build_object(
        'customerId', customer_id, 'requests', requests, 'successful', successful, 'rateLimited', rate_limited,
        'units', units, 'bytesIn', bytes_in, 'bytesOut', bytes_out) ORDER BY rank) AS customers
      FROM ranked WHERE rank <= ${MOST_CUSTOMERS} GROUP BY hour, key_id
    )
    SELECT taken.*, busiest.customers, coalesce(consumer_keys.external_id, deleted_keys.external_id) AS external_id,
      coalesce(consumer_keys.tags, deleted_keys.tags, '{}') AS tags
    FROM taken LEFT JOIN busiest USING (hour, key_id)
      LEFT JOIN consumer_keys ON consumer_keys.id = key_id LEFT JOIN deleted_keys ON deleted_keys.id = key_id
    ORDER BY hour, key_id`.execute(trx);
  return rows;
}

function unsentOf(row: UsageRow, passed: { readonly hourMs: number; readonly keyId: string }): UnsentUsage {
  const { requests, successful, rate_limited: rateLimited, units } = row;
  const hourMs = row.hour.getTime();
  return {
    ...{ keyId: row.key_id, hourMs, externalId: row.external_id, tags: row.tags },
    ...{ requests, successful, rateLimited, units, bytesIn: row.bytes_in, bytesOut: row.bytes_out },
    customers: row.customers ?? [],
    isLate: !isAfter(hourMs, row.key_id, passed),
  };
}

/** Whether the usage of a key in an hour comes after what became events already. */
function isAfter(
  hourMs: number,
  keyId: string,
  passed: { readonly hourMs: number; readonly keyId: string },
): boolean {
  return hourMs > passed.hourMs || (hourMs === passed.hourMs && keyId > passed.keyId);
}
