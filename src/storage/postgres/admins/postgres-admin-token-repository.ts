import { isDeepStrictEqual } from 'node:util';
import { type AdminToken, auditedToken } from '../../../admins/admin-token.ts';
import type {
  AdminTokenEdit,
  AdminTokenPage,
  AdminTokenRepository,
  StoredAdminToken,
} from '../../../admins/admin-token-repository.ts';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { isVisible } from '../../../permissions/visible-records.ts';
import { requireState } from '../../../platform/precondition.ts';
import type { AuditedChanges } from '../audit/audited-changes.ts';
import { countRows } from '../count-rows.ts';
import { isLimitedTo } from '../limited-rows.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { changedColumns, tokenOfRow } from './admin-tokens-table.ts';

/** Admin tokens in Postgres. */
export class PostgresAdminTokenRepository implements AdminTokenRepository {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;

  constructor(db: RecordsDatabase, changes: AuditedChanges) {
    this.#db = db;
    this.#changes = changes;
  }

  async insert(stored: StoredAdminToken, change: ChangeContext): Promise<void> {
    await this.#changes.make(change, async (trx, note) => {
      const { token } = stored;
      await trx
        .insertInto('admin_tokens')
        .values({ id: token.id, created_at: new Date(token.createdAtMs), ...changedColumns(stored) })
        .execute();
      note({ action: 'token.create', ...auditedToken(null, token) });
    });
  }

  async list({ onlyTags, limit, beforeId }: AdminTokenPage): Promise<readonly AdminToken[]> {
    let page = this.#db.selectFrom('admin_tokens').selectAll().orderBy('id', 'desc').limit(limit);
    if (beforeId !== undefined) page = page.where('id', '<', beforeId);
    page = page.where(isLimitedTo(onlyTags));
    return (await page.execute()).map((row) => tokenOfRow(row).token);
  }

  count(onlyTags: readonly string[]): Promise<number> {
    return countRows(this.#db.selectFrom('admin_tokens').where(isLimitedTo(onlyTags)));
  }

  async find(tokenId: string): Promise<AdminToken | undefined> {
    const row = await this.#db
      .selectFrom('admin_tokens')
      .selectAll()
      .where('id', '=', tokenId)
      .executeTakeFirst();
    return row && tokenOfRow(row).token;
  }

  async findByLookup(lookups: readonly Buffer[], nowMs: number): Promise<StoredAdminToken | undefined> {
    const row = await this.#db
      .selectFrom('admin_tokens')
      .selectAll()
      .where(({ or, and, eb }) =>
        or([
          eb('lookup', 'in', lookups),
          and([eb('previous_lookup', 'in', lookups), eb('previous_valid_until', '>', new Date(nowMs))]),
        ]),
      )
      .executeTakeFirst();
    return row && tokenOfRow(row);
  }

  update(
    tokenId: string,
    { action, edit }: AdminTokenEdit,
    change: ChangeContext,
  ): Promise<AdminToken | undefined> {
    return this.#changes.make(change, async (trx, note) => {
      const present = await lockedToken(trx, tokenId, change);
      if (present === undefined) return undefined;
      const wanted = edit(present);
      if (isDeepStrictEqual(wanted, present)) return present.token;
      const token = { ...wanted.token, updatedAtMs: change.atMs, version: present.token.version + 1 };
      await trx
        .updateTable('admin_tokens')
        .set(changedColumns({ ...wanted, token }))
        .where('id', '=', tokenId)
        .execute();
      note({ action, ...auditedToken(present.token, token) });
      return token;
    });
  }

  delete(tokenId: string, change: ChangeContext): Promise<boolean> {
    return this.#changes.make(change, async (trx, note) => {
      const present = await lockedToken(trx, tokenId, change);
      if (present === undefined) return false;
      await trx.deleteFrom('admin_tokens').where('id', '=', tokenId).execute();
      note({ action: 'token.delete', ...auditedToken(present.token, null) });
      return true;
    });
  }

  async noteUse(tokenId: string, atMs: number): Promise<void> {
    await this.#db
      .updateTable('admin_tokens')
      .set({ last_used_at: new Date(atMs) })
      .where('id', '=', tokenId)
      .execute();
  }
}

/** A token, locked against changes and deletion until the transaction ends. Undefined if it does not exist or the change can't see it. */
async function lockedToken(
  trx: RecordsDatabase,
  tokenId: string,
  { onlyTags, expects }: ChangeContext,
): Promise<StoredAdminToken | undefined> {
  const row = await trx
    .selectFrom('admin_tokens')
    .selectAll()
    .where('id', '=', tokenId)
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined || !isVisible(row.only_tags, onlyTags)) return undefined;
  const stored = tokenOfRow(row);
  requireState(expects, stored.token);
  return stored;
}
