import { type Selectable, sql } from 'kysely';
import type { AuditChain } from '../../../audit/audit-chain.ts';
import { type AuditEntry, type AuditedAction, auditIdOf } from '../../../audit/audit-entry.ts';
import type {
  AuditFilter,
  AuditLog,
  AuditPage,
  ChainHead,
  ChainReport,
  ExpectedHead,
} from '../../../audit/audit-log.ts';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { TollgateError } from '../../../errors.ts';
import { countRows } from '../count-rows.ts';
import { earlierNowMs } from '../earlier-now.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { entriesOfPage, matching } from './audit-log-pages.ts';
import { type AuditLogEndsTable, entryOfRow } from './audit-log-tables.ts';
import type { AuditedChanges } from './audited-changes.ts';
import { ChainVerifier } from './chain-verifier.ts';

/** Entries that are verified, or removed, at a time: in one turn of the event loop. */
const BATCH = 250;
const DAY_MS = 86_400_000;

/** The audit log in Postgres. */
export class PostgresAuditLog implements AuditLog {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;
  readonly #chain: AuditChain;
  #lastHead: ChainHead | undefined;

  constructor(db: RecordsDatabase, changes: AuditedChanges, chain: AuditChain) {
    this.#db = db;
    this.#changes = changes;
    this.#chain = chain;
  }

  get lastHead(): ChainHead | undefined {
    return this.#lastHead;
  }

  async record(action: AuditedAction, change: ChangeContext): Promise<void> {
    await this.#changes.make(change, async (_trx, note) => note(action));
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

  async list(filter: AuditFilter, page: AuditPage): Promise<readonly AuditEntry[]> {
    const rows = await entriesOfPage(this.#db, filter, page).execute();
    return rows.map(entryOfRow);
  }

  count(filter: AuditFilter): Promise<number> {
    return countRows(this.#db.selectFrom('audit_log').where(matching(filter)));
  }

  async verify(expected?: ExpectedHead): Promise<ChainReport> {
    for (;;) {
      const ends = await endsOf(this.#db).executeTakeFirstOrThrow();
      const verifier = await this.#verifier(this.#db, ends, expected);
      await this.#follow(verifier, ends.last_sequence);
      const report = verifier.finish();
      // Entries that were removed for their age meanwhile were not tampered with.
      const now = report.isValid ? ends : await endsOf(this.#db).executeTakeFirstOrThrow();
      if (now.pruned_sequence !== ends.pruned_sequence) continue;
      this.#lastHead = report.head;
      return report;
    }
  }

  async takeDailyHead(nowMs: number): Promise<ChainHead | undefined> {
    const { rows } = await sql<{ count: number; hash: Uint8Array; at: Date | null }>`
      UPDATE audit_log_ends
      SET reported_at = ${new Date(nowMs)}
      WHERE reported_at IS NULL OR reported_at <= ${new Date(nowMs - DAY_MS)} OR reported_at > ${new Date(nowMs + DAY_MS)}
      RETURNING last_sequence AS count, last_hash AS hash,
        (SELECT at FROM audit_log WHERE sequence = last_sequence) AS at`.execute(this.#db);
    const [row] = rows;
    if (row === undefined) return undefined;
    const { count, hash, at } = row;
    this.#lastHead = { count, hash: Buffer.from(hash).toString('hex'), atMs: at?.getTime() ?? null };
    return this.#lastHead;
  }

  async hasKnownEnd(): Promise<boolean> {
    const { last_mac } = await endsOf(this.#db).executeTakeFirstOrThrow();
    return this.#chain.isOfKnownKey(last_mac, await storedKeys(this.#db));
  }

  retireKeys(): Promise<number> {
    return this.#db.transaction().execute(async (trx) => {
      const ends = await endsOf(trx).forUpdate().executeTakeFirstOrThrow();
      const last = { sequence: ends.last_sequence, hash: ends.last_hash };
      const pruned = { sequence: ends.pruned_sequence, hash: ends.pruned_hash };
      const retired = this.#chain.retire(last);
      for (const { id, sealed } of [...this.#chain.resealed(await storedKeys(trx)), ...retired]) {
        await trx
          .insertInto('audit_log_keys')
          .values({ key_id: id, sealed })
          .onConflict((conflict) => conflict.column('key_id').doUpdateSet({ sealed }))
          .execute();
      }
      await trx
        .updateTable('audit_log_ends')
        .set({
          last_mac: this.#chain.remark('last', last, ends.last_mac),
          pruned_mac: this.#chain.remark('pruned', pruned, ends.pruned_mac),
        })
        .execute();
      return retired.length;
    });
  }

  async prune(nowMs: number, keptMs: number, goesOn = () => true): Promise<number> {
    const beforeMs = (await earlierNowMs(this.#db, nowMs)) - keptMs;
    let removed = 0;
    for (;;) {
      const batch = await this.#db.transaction().execute((trx) => this.#pruneBatch(trx, beforeMs));
      removed += batch;
      if (batch < BATCH || !goesOn()) return removed;
    }
  }

  async #verifier(
    db: RecordsDatabase,
    ends: Selectable<AuditLogEndsTable>,
    expected?: ExpectedHead,
  ): Promise<ChainVerifier> {
    const retired = this.#chain.retired(await storedKeys(db));
    return new ChainVerifier({ chain: this.#chain, ends, retired, expected });
  }

  /** Removes the oldest entries that are too old, at most one batch. Resolves with their number. */
  async #pruneBatch(trx: RecordsDatabase, beforeMs: number): Promise<number> {
    const ends = await endsOf(trx).forUpdate().executeTakeFirstOrThrow();
    const verifier = await this.#verifier(trx, ends);
    const first = await trx
      .selectFrom('audit_log')
      .selectAll()
      .where('sequence', '>', ends.pruned_sequence)
      .orderBy('sequence')
      .limit(BATCH)
      .execute();
    const kept = first.findIndex(({ at }) => at.getTime() >= beforeMs);
    const old = kept === -1 ? first : first.slice(0, kept);
    const last = old.at(-1);
    if (last === undefined) return 0;
    // An entry that was given an older time would be removed as if by retention.
    if (!old.every((row) => verifier.follows(row))) throw new Error(whyNothingIsRemoved(verifier));
    await trx.deleteFrom('audit_log').where('sequence', '<=', last.sequence).execute();
    const pruned_mac = this.#chain.markEnd('pruned', last);
    await trx
      .updateTable('audit_log_ends')
      .set({ pruned_sequence: last.sequence, pruned_hash: last.hash, pruned_mac })
      .execute();
    return old.length;
  }

  async #follow(verifier: ChainVerifier, lastSequence: number): Promise<void> {
    for (;;) {
      const rows = await this.#db
        .selectFrom('audit_log')
        .selectAll()
        .where('sequence', '>', verifier.sequence)
        .where('sequence', '<=', lastSequence)
        .orderBy('sequence')
        .limit(BATCH)
        .execute();
      if (!rows.every((row) => verifier.follows(row)) || rows.length < BATCH) return;
    }
  }
}

function whyNothingIsRemoved({ problem, sequence }: ChainVerifier): string {
  // The mark of the beginning, too, can't be verified without the key that made it.
  const mayLackKey = problem === 'unknown_key' || problem === 'beginning';
  const orLacksKey = mayLackKey ? ', or ENCRYPTION_KEY lacks the key that it was written under' : '';
  return `${auditIdOf(sequence + 1)} was changed outside of Tollgate${orLacksKey}: nothing is removed from the audit log`;
}

function endsOf(db: RecordsDatabase) {
  return db.selectFrom('audit_log_ends').selectAll();
}

function storedKeys(db: RecordsDatabase) {
  return db.selectFrom('audit_log_keys').select(['key_id as id', 'sealed']).execute();
}
