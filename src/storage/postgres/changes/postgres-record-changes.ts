import { sql } from 'kysely';
import type {
  ChangedRecord,
  ChangesRead,
  ClaimedChange,
  RecordChanges,
} from '../../../limiter/changes/record-changes.ts';
import { type RecordVersion, VERSION_KEPT_MS } from '../../../limiter/record-versions.ts';
import type { PlanRepository } from '../../../plans/plan-repository.ts';
import { snapshotVersion } from '../keys/key-snapshots.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** What is needed besides the database. */
export interface RecordChangesOptions {
  readonly plans: Pick<PlanRepository, 'keysUnder'>;
  readonly defaultPlanId: string | null;
}

/** Until then the replica that made a change publishes it itself. */
const OWN_PUBLICATION = sql`interval '1 second'`;
const CLAIM = sql`interval '3 seconds'`;
/** A change that waits for longer counts as waiting. */
const USUAL_WAIT = sql`interval '5 seconds'`;
/** Most changes that one query reads. */
const PAGE = 5000;
/** Most changes that are counted. */
const MAX_COUNTED = 10_000;
/** How long versions last in Redis, and a margin for clocks that differ. */
const VERSIONS_LAST = sql.raw(`interval '${VERSION_KEPT_MS + 600_000} milliseconds'`);
/**
 * How long changes are kept: published ones for longer than any replica may go without a read. After a day without Redis nothing is left
 * there that a change would replace.
 */
const PUBLISHED_KEPT = sql`interval '2 hours'`;
const KEPT = sql`interval '1 day'`;
/** A replica that has read nothing for longer may have missed changes that were removed. Milliseconds. */
const LONGEST_GAP_MS = 3_600_000;
/** Rows that one statement removes. */
const PRUNED_AT_ONCE = 5000;

interface ReadRow {
  readonly snapshot: string;
  readonly now_ms: number;
  readonly claimable: number;
  readonly waiting: number;
  readonly kind: ChangedRecord['kind'] | null;
  readonly id: string | null;
  readonly version: number | null;
}

/**
 * The table `record_changes`, which triggers fill. A position is a snapshot of Postgres: which transactions had been committed at a read.
 * The next read finds exactly the changes of all others, in whichever order their transactions began and ended. Each method is one
 * statement, so that all of them work through PgBouncer as well.
 */
export class PostgresRecordChanges implements RecordChanges {
  readonly #db: RecordsDatabase;
  readonly #options: RecordChangesOptions;

  constructor(db: RecordsDatabase, options: RecordChangesOptions) {
    this.#db = db;
    this.#options = options;
  }

  async read(position: string | undefined): Promise<ChangesRead> {
    const [snapshot = null, atMs = '0'] = position?.split(' ') ?? [];
    const first = await this.#readPage(snapshot, '');
    const changed = [...first.changed];
    // Many changes come in pages. What is changed meanwhile is found by the next read, because the first page's snapshot lacks it.
    for (let page = first; page.changed.length === PAGE; ) {
      page = await this.#readPage(snapshot, nameOf(page.changed.at(-1)));
      changed.push(...page.changed);
    }
    const isGap = first.now_ms - Number(atMs) > LONGEST_GAP_MS;
    return {
      position: `${first.snapshot} ${first.now_ms}`,
      changed,
      mayMiss: snapshot === null || isGap || endOf(first.snapshot) < endOf(snapshot),
      claimable: first.claimable,
      waiting: first.waiting,
    };
  }

  async #readPage(
    snapshot: string | null,
    after: string,
  ): Promise<ReadRow & { readonly changed: readonly ChangedRecord[] }> {
    // Transactions before the snapshot's first one in progress are in it, so the index finds the few changes since.
    const { rows } = await sql<ReadRow>`
      SELECT now.snapshot, now.now_ms, counts.claimable, counts.waiting, changes.kind, changes.id,
        CASE WHEN NOT changes.is_deleted THEN changes.version END AS version
      FROM (SELECT pg_current_snapshot()::text AS snapshot, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms) AS now
      CROSS JOIN (
        SELECT count(*) FILTER (WHERE coalesce(claimed_until <= clock_timestamp(), true)) AS claimable,
          count(*) FILTER (WHERE changed_at < clock_timestamp() - ${USUAL_WAIT}) AS waiting
        FROM (
          SELECT changed_at, claimed_until FROM record_changes
          WHERE published_at IS NULL AND changed_at < clock_timestamp() - ${OWN_PUBLICATION}
          ORDER BY changed_at LIMIT ${MAX_COUNTED}
        ) AS unpublished
      ) AS counts
      LEFT JOIN (
        SELECT kind, id, is_deleted, version FROM record_changes
        WHERE transaction >= pg_snapshot_xmin(${snapshot}::pg_snapshot)
          AND NOT pg_visible_in_snapshot(transaction, ${snapshot}::pg_snapshot)
          AND kind || ' ' || id > ${after}
        ORDER BY kind || ' ' || id LIMIT ${PAGE}
      ) AS changes ON true`.execute(this.#db);
    const [first] = rows;
    if (first === undefined) throw new Error('a read of the changes gave no row');
    const changed = rows.flatMap(({ kind, id, version }) =>
      kind === null || id === null ? [] : [{ kind, id, version }],
    );
    return { ...first, changed };
  }

  async claim(limit: number): Promise<readonly ClaimedChange[]> {
    const { rows } = await sql<ClaimedChange>`
      UPDATE record_changes SET claimed_until = clock_timestamp() + ${CLAIM}
      WHERE (kind, id) IN (
        SELECT kind, id FROM record_changes
        WHERE published_at IS NULL AND changed_at < clock_timestamp() - ${OWN_PUBLICATION}
          AND coalesce(claimed_until <= clock_timestamp(), true)
        ORDER BY claimed_until NULLS FIRST, changed_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )
      RETURNING kind, id, transaction::text AS "changeId"`.execute(this.#db);
    return rows;
  }

  async versionsOf(keyIds: readonly string[]): Promise<readonly RecordVersion[]> {
    if (keyIds.length === 0) return [];
    const { rows } = await sql<{ id: string; version: number; plan_version: number | null }>`
      SELECT keys.id, keys.version, plans.version AS plan_version FROM consumer_keys AS keys
      LEFT JOIN plans ON plans.id = coalesce(keys.plan_id, ${this.#options.defaultPlanId}::text)
      WHERE keys.id = ANY (${keyIds}::text[])`.execute(this.#db);
    return rows.map(({ id, version, plan_version }) => ({
      keyId: id,
      version: snapshotVersion(version, plan_version),
    }));
  }

  versionsUnder(planId: string): AsyncIterable<readonly RecordVersion[]> {
    return this.#options.plans.keysUnder(planId);
  }

  async renew(changes: readonly ClaimedChange[]): Promise<boolean> {
    const renewed = await this.#updateClaims(changes, sql`claimed_until = clock_timestamp() + ${CLAIM}`);
    return renewed === changes.length;
  }

  async settle(changes: readonly ClaimedChange[]): Promise<void> {
    await this.#updateClaims(changes, sql`published_at = clock_timestamp()`);
  }

  async release(changes: readonly ClaimedChange[]): Promise<void> {
    await this.#updateClaims(changes, sql`claimed_until = clock_timestamp()`);
  }

  /**
   * Leaves claims alone that are over: since then Redis may have lost the change, and `repeat` may have been called. Rows are locked only
   * where that needs no wait: a change that is being made may hold some of them, and wait for others.
   */
  async #updateClaims(
    changes: readonly ClaimedChange[],
    assignment: ReturnType<typeof sql<unknown>>,
  ): Promise<number> {
    if (changes.length === 0) return 0;
    const { numAffectedRows = 0n } = await sql`
      UPDATE record_changes SET ${assignment}
      WHERE (kind, id) IN (
        SELECT stored.kind, stored.id FROM record_changes AS stored
        JOIN unnest(
          ${changes.map(({ kind }) => kind)}::text[], ${changes.map(({ id }) => id)}::text[],
          ${changes.map(({ changeId }) => changeId)}::xid8[]
        ) AS claimed (kind, id, transaction) USING (kind, id, transaction)
        WHERE stored.claimed_until > clock_timestamp()
        FOR UPDATE OF stored SKIP LOCKED
      )`.execute(this.#db);
    return Number(numAffectedRows);
  }

  async notePublished(changes: readonly ChangedRecord[]): Promise<void> {
    if (changes.length === 0) return;
    await sql`
      UPDATE record_changes SET published_at = clock_timestamp()
      WHERE (kind, id) IN (
        SELECT stored.kind, stored.id FROM record_changes AS stored
        JOIN unnest(
          ${changes.map(({ kind }) => kind)}::text[], ${changes.map(({ id }) => id)}::text[],
          ${changes.map(({ version }) => version)}::bigint[]
        ) AS done (kind, id, version) ON stored.kind = done.kind AND stored.id = done.id
          AND (done.version IS NULL AND stored.is_deleted OR NOT stored.is_deleted AND stored.version <= done.version)
        WHERE stored.published_at IS NULL
        FOR UPDATE OF stored SKIP LOCKED
      )`.execute(this.#db);
  }

  async repeat(withinMs: number): Promise<boolean> {
    const { rows } = await sql<{ is_due: boolean }>`
      WITH due AS (
        UPDATE record_changes_repeated SET at = clock_timestamp() 
        WHERE at < clock_timestamp() - ${withinMs}::float8 * interval '1 millisecond' RETURNING at
      ), again AS (
        UPDATE record_changes SET published_at = NULL, claimed_until = NULL
        WHERE (kind, id) IN (
          SELECT kind, id FROM record_changes
          WHERE published_at IS NOT NULL AND changed_at > clock_timestamp() - ${VERSIONS_LAST} AND EXISTS (SELECT FROM due)
          FOR UPDATE SKIP LOCKED
        )
      )
      SELECT EXISTS (SELECT FROM due) AS is_due`.execute(this.#db);
    return rows[0]?.is_due ?? false;
  }

  async prune(): Promise<number> {
    const { numAffectedRows = 0n } = await sql`
      DELETE FROM record_changes WHERE (kind, id) IN (
        SELECT kind, id FROM record_changes
        WHERE changed_at < clock_timestamp() - CASE WHEN published_at IS NULL THEN ${KEPT} ELSE ${PUBLISHED_KEPT} END
        LIMIT ${PRUNED_AT_ONCE} FOR UPDATE SKIP LOCKED
      )`.execute(this.#db);
    return Number(numAffectedRows);
  }
}

/** Names a record among all, in the order of pages. */
function nameOf(record: ChangedRecord | undefined): string {
  return record === undefined ? '' : `${record.kind} ${record.id}`;
}

/** The first transaction that had not begun when a snapshot was taken. A snapshot is `<xmin>:<xmax>:<in progress>`. */
function endOf(snapshot: string): bigint {
  return BigInt(snapshot.split(':')[1] ?? 0);
}
