import type { ExpressionBuilder, Selectable, Updateable } from 'kysely';
import type { ChangeContext } from '../../../audit/change-context.ts';
import type { Grant } from '../../../permissions/principal.ts';
import type {
  Renewal,
  SessionPage,
  SessionSecrets,
  SessionStore,
  StoredSession,
} from '../../../sign-in/session-store.ts';
import { auditedSession, type Session } from '../../../sign-in/signed-in-session.ts';
import type { AuditedChanges } from '../audit/audited-changes.ts';
import { countRows } from '../count-rows.ts';
import { earlierNowMs } from '../earlier-now.ts';
import { isLimitedTo } from '../limited-rows.ts';
import type { RecordsDatabase, RecordsTables } from '../records-database.ts';
import { rowOfSession, type SignInSessionsTable, sessionOfRow } from './sign-in-sessions-table.ts';

/** Sessions in Postgres. */
export class PostgresSessionStore implements SessionStore {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;

  constructor(db: RecordsDatabase, changes: AuditedChanges) {
    this.#db = db;
    this.#changes = changes;
  }

  insert(stored: StoredSession, change: ChangeContext): Promise<void> {
    return this.#changes.make(change, async (trx, note) => {
      const now = new Date(await earlierNowMs(trx, change.atMs));
      await trx.deleteFrom('sign_in_sessions').where('expires_at', '<=', now).execute();
      await trx.insertInto('sign_in_sessions').values(rowOfSession(stored)).execute();
      note({ action: 'session.create', ...auditedSession(null, stored.session) });
    });
  }

  async findByLookup(lookups: readonly Buffer[]): Promise<StoredSession | undefined> {
    const row = await this.#db
      .selectFrom('sign_in_sessions')
      .selectAll()
      .where('lookup', 'in', lookups)
      .executeTakeFirst();
    return row && sessionOfRow(row);
  }

  async find(sessionId: string): Promise<StoredSession | undefined> {
    const row = await this.#db
      .selectFrom('sign_in_sessions')
      .selectAll()
      .where('id', '=', sessionId)
      .executeTakeFirst();
    return row && sessionOfRow(row);
  }

  async list({ limit, beforeId, ...filter }: SessionPage): Promise<readonly Session[]> {
    let page = this.#db.selectFrom('sign_in_sessions').selectAll().where(matching(filter));
    if (beforeId !== undefined) page = page.where('id', '<', beforeId);
    const rows = await page.orderBy('id', 'desc').limit(limit).execute();
    return rows.map((row) => sessionOfRow(row).session);
  }

  count(filter: Omit<SessionPage, 'limit' | 'beforeId'>): Promise<number> {
    return countRows(this.#db.selectFrom('sign_in_sessions').where(matching(filter)));
  }

  remove(sessionId: string, change: ChangeContext): Promise<boolean> {
    return this.#changes.make(change, async (trx, note) => {
      const row = await trx
        .deleteFrom('sign_in_sessions')
        .where('id', '=', sessionId)
        .where(isLimitedTo(change.onlyTags))
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) return false;
      note({ action: 'session.end', ...auditedSession(sessionOfRow(row).session, null) });
      return true;
    });
  }

  claimRenewal({ id, renewAtMs: before }: Session, renewAtMs: number, nowMs: number): Promise<boolean> {
    const claimed = { renew_at: new Date(renewAtMs), last_used_at: new Date(nowMs) };
    return this.#update({ id, renew_at: new Date(before) }, claimed);
  }

  postponeRenewal(id: string, renewAtMs: number): Promise<boolean> {
    return this.#update({ id }, { renew_at: new Date(renewAtMs) });
  }

  renew(id: string, { name, email, scopes, onlyTags, lookup, sealed }: Renewal): Promise<boolean> {
    return this.#update({ id }, { name, email, scopes, only_tags: onlyTags, lookup, sealed });
  }

  grantsOf(subject: string, nowMs: number): Promise<readonly Grant[]> {
    return this.#db
      .selectFrom('sign_in_sessions')
      .select(['scopes', 'only_tags as onlyTags'])
      .where('subject', '=', subject)
      .where('expires_at', '>', new Date(nowMs))
      .execute();
  }

  async after(sessionId: string | undefined, limit: number): Promise<readonly StoredSession[]> {
    const rows = await this.#db
      .selectFrom('sign_in_sessions')
      .selectAll()
      .where('id', '>', sessionId ?? '')
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map(sessionOfRow);
  }

  replace({ session, sealed }: StoredSession, by: SessionSecrets): Promise<boolean> {
    return this.#update({ id: session.id, sealed }, by);
  }

  /** Writes columns of the session that has these values now. Resolves with whether there was one. */
  async #update(
    present: Partial<Selectable<SignInSessionsTable>>,
    columns: Updateable<SignInSessionsTable>,
  ): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('sign_in_sessions')
      .set(columns)
      .where(({ and }) => and(present))
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }
}

function matching({ onlyTags, id, nowMs }: Omit<SessionPage, 'limit' | 'beforeId'>) {
  return ({ eb, and }: ExpressionBuilder<RecordsTables, 'sign_in_sessions'>) =>
    and([
      isLimitedTo(onlyTags),
      eb('expires_at', '>', new Date(nowMs)),
      ...(id === undefined ? [] : [eb('id', '=', id)]),
    ]);
}
