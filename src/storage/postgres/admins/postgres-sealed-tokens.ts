import { sql } from 'kysely';
import type { SealedToken, SealedTokens } from '../../../admins/rotate-admin-tokens.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { secretColumns, secretsOfRow } from './admin-tokens-table.ts';

/** The columns of admin tokens that depend on the encryption key, in Postgres. */
export class PostgresSealedTokens implements SealedTokens {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async after(tokenId: string | undefined, limit: number): Promise<readonly SealedToken[]> {
    const rows = await this.#db
      .selectFrom('admin_tokens')
      .selectAll()
      .select(sql<boolean>`coalesce(previous_valid_until > now(), false)`.as('has_previous'))
      .where('id', '>', tokenId ?? '')
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map((row) => {
      const { present, previous } = secretsOfRow(row);
      return { id: row.id, present, previous: row.has_previous ? previous : null };
    });
  }

  async replace({ id, present, previous }: SealedToken, by: Omit<SealedToken, 'id'>): Promise<void> {
    const { sealed_digest, lookup, ...previousColumns } = secretColumns(by);
    let update = this.#db
      .updateTable('admin_tokens')
      .set({ sealed_digest, lookup, ...(previous !== null && previousColumns) })
      .where('id', '=', id)
      .where('lookup', '=', present.lookup);
    if (previous !== null) update = update.where('previous_lookup', '=', previous.lookup);
    await update.execute();
  }
}
