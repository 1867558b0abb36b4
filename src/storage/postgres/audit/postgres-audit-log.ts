import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import type { AuditAction, AuditEntry, AuditedAction, AuditTarget } from '../../../audit/audit-entry.ts';
import type { AuditFilter, AuditLog, AuditPage, ChainReport } from '../../../audit/audit-log.ts';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { type ChainedEntry, entryHash } from '../../../audit/entry-hash.ts';
import { TollgateError } from '../../../errors.ts';
import type { RecordsDatabase, RecordsTables } from '../records-database.ts';
import type { AuditLogEndsTable, AuditLogTable } from './audit-log-tables.ts';
import { auditedChange } from './audited-change.ts';

/** Entries that are verified, or removed, at a time. */
const BATCH = 1000;

/** The audit log in Postgres. */
export class PostgresAuditLog implements AuditLog {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async record(action: AuditedAction, change: ChangeContext): Promise<void> {
    await auditedChange(this.#db, change, async (_trx, note) => note(action));
  }

  async accompany(action: AuditedAction, change: ChangeContext, work: () => Promise<void>): Promise<void> {
    // The entry comes first: work that can't be logged must not be done, and a crash must not leave a change without its entry.
    await this.record(action, change);
    try {
      await work();
    } catch (error) {
      const outcome = error instanceof TollgateError ? error.code : 'internal_error';
      await this.record({ ...action, outcome }, change);
      throw error;
    }
  }

  async list(filter: AuditFilter, { limit, beforeSequence }: AuditPage): Promise<readonly AuditEntry[]> {
    let page = this.#db.selectFrom('audit_log').selectAll().where(matching(filter));
    if (beforeSequence !== undefined) page = page.where('sequence', '<', beforeSequence);
    const rows = await page.orderBy('sequence', 'desc').limit(limit).execute();
    return rows.map((row) => {
      const { changesText, ...entry } = entryOfRow(row);
      return { ...entry, changes: JSON.parse(changesText) };
    });
  }

  async count(filter: AuditFilter): Promise<number> {
    const { total } = await this.#db
      .selectFrom('audit_log')
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .where(matching(filter))
      .executeTakeFirstOrThrow();
    return total;
  }

  async verify(): Promise<ChainReport> {
    for (;;) {
      const ends = await endsOf(this.#db).executeTakeFirstOrThrow();
      const report = await this.#verifyBetween(ends);
      if (report.isValid) return report;
      // Entries that were removed for their age meanwhile were not tampered with.
      const now = await endsOf(this.#db).executeTakeFirstOrThrow();
      if (now.pruned_sequence === ends.pruned_sequence) return report;
    }
  }

  async prune(beforeMs: number): Promise<number> {
    let removed = 0;
    for (;;) {
      const batch = await this.#db.transaction().execute((trx) => pruneBatch(trx, beforeMs));
      removed += batch;
      if (batch < BATCH) return removed;
    }
  }

  async #verifyBetween(ends: Selectable<AuditLogEndsTable>): Promise<ChainReport> {
    let sequence = ends.pruned_sequence;
    let hash = Buffer.from(ends.pruned_hash);
    const lastHash = Buffer.from(ends.last_hash);
    const report = (isValid: boolean): ChainReport => ({
      isValid,
      entries: sequence - ends.pruned_sequence,
      firstBroken: isValid ? undefined : sequence + 1,
      lastHash: lastHash.toString('hex'),
    });
    for (;;) {
      const rows = await this.#db
        .selectFrom('audit_log')
        .selectAll()
        .where('sequence', '>', sequence)
        .where('sequence', '<=', ends.last_sequence)
        .orderBy('sequence')
        .limit(BATCH)
        .execute();
      for (const row of rows) {
        if (row.sequence !== sequence + 1 || !isLinked(row, hash)) return report(false);
        sequence = row.sequence;
        hash = Buffer.from(row.hash);
      }
      if (rows.length < BATCH) return report(sequence === ends.last_sequence && hash.equals(lastHash));
    }
  }
}

function endsOf(db: RecordsDatabase) {
  return db.selectFrom('audit_log_ends').selectAll();
}

function isLinked(row: Selectable<AuditLogTable>, previousHash: Buffer): boolean {
  return (
    previousHash.equals(row.previous_hash) && entryHash(row.previous_hash, entryOfRow(row)).equals(row.hash)
  );
}

/** Removes the oldest entries that are too old, at most one batch. Resolves with their number. */
async function pruneBatch(trx: RecordsDatabase, beforeMs: number): Promise<number> {
  const ends = await endsOf(trx).forUpdate().executeTakeFirstOrThrow();
  const first = await trx
    .selectFrom('audit_log')
    .select(['sequence', 'at', 'hash'])
    .where('sequence', '>', ends.pruned_sequence)
    .orderBy('sequence')
    .limit(BATCH)
    .execute();
  const kept = first.findIndex(({ at }) => at.getTime() >= beforeMs);
  const old = kept === -1 ? first : first.slice(0, kept);
  const last = old.at(-1);
  if (last === undefined) return 0;
  await trx.deleteFrom('audit_log').where('sequence', '<=', last.sequence).execute();
  await trx
    .updateTable('audit_log_ends')
    .set({ pruned_sequence: last.sequence, pruned_hash: last.hash })
    .execute();
  return old.length;
}

/** The condition that an entry meets the filter. */
function matching({ fromMs, toMs, action, actorId, targetId, outcome, onlyTags = [] }: AuditFilter) {
  return ({ eb, and }: ExpressionBuilder<RecordsTables, 'audit_log'>) => {
    const wanted = [];
    if (fromMs !== undefined) wanted.push(eb('at', '>=', new Date(fromMs)));
    if (toMs !== undefined) wanted.push(eb('at', '<', new Date(toMs)));
    if (action !== undefined) wanted.push(eb('action', '=', action));
    if (actorId === 'root' || actorId === 'config') wanted.push(eb('actor_type', '=', actorId));
    else if (actorId !== undefined) wanted.push(eb('actor_id', '=', actorId));
    if (targetId !== undefined) wanted.push(eb('target_id', '=', targetId));
    if (outcome !== undefined) wanted.push(eb('outcome', '=', outcome));
    if (onlyTags.length > 0) wanted.push(sql<boolean>`target_tags @> ${onlyTags}::text[]`);
    return and(wanted);
  };
}

function entryOfRow(row: Selectable<AuditLogTable>): ChainedEntry {
  return {
    sequence: row.sequence,
    atMs: row.at.getTime(),
    // A later version may have written an action or a target type that this one does not know.
    action: row.action as AuditAction,
    actor: { type: row.actor_type, id: row.actor_id, name: row.actor_name },
    target: {
      type: row.target_type as AuditTarget['type'],
      id: row.target_id,
      name: row.target_name,
      tags: row.target_tags,
    },
    changesText: row.changes,
    reason: row.reason,
    requestId: row.request_id,
    address: row.address,
    outcome: row.outcome,
  };
}
