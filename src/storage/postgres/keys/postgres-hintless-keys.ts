import { sql } from 'kysely';
import type { HintlessKey, HintlessKeys } from '../../../keys/secrets/fill-secret-hints.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** Keys without a hint, in Postgres. */
export class PostgresHintlessKeys implements HintlessKeys {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  fill(
    afterId: string | undefined,
    limit: number,
    hintOf: (key: HintlessKey) => string | undefined,
  ): Promise<string | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      // A lock of the transaction, because a transaction pooler may give each transaction another session.
      const { rows } = await sql<{ is_ours: boolean }>`
        SELECT pg_try_advisory_xact_lock(${ADVISORY_LOCKS.secretHints}) AS is_ours`.execute(trx);
      if (rows[0]?.is_ours !== true) return undefined;
      const keys = await hintlessKeys(trx, afterId, limit);
      const hinted = keys.map((key) => ({ key, hint: hintOf(key) })).filter(({ hint }) => hint !== undefined);
      // A key that was rotated meanwhile has the hint of its new secret.
      await sql`
        UPDATE consumer_keys SET secret_hint = opened.hint
        FROM unnest(${hinted.map(({ key }) => key.id)}::text[], ${hinted.map(({ key }) => key.sealedSecret)}::bytea[],
          ${hinted.map(({ hint }) => hint)}::text[]) AS opened (id, sealed_secret, hint)
        WHERE consumer_keys.id = opened.id AND consumer_keys.sealed_secret = opened.sealed_secret
          AND consumer_keys.secret_hint IS NULL`.execute(trx);
      return keys.length < limit ? undefined : keys.at(-1)?.id;
    });
  }
}

async function hintlessKeys(
  trx: RecordsDatabase,
  afterId: string | undefined,
  limit: number,
): Promise<readonly HintlessKey[]> {
  const rows = await trx
    .selectFrom('consumer_keys')
    .select(['id', 'sealed_secret', 'secret_origin'])
    .where('secret_hint', 'is', null)
    .where('sealed_secret', 'is not', null)
    .where('id', '>', afterId ?? '')
    .orderBy('id')
    .limit(limit)
    // In the order in which all changes lock keys.
    .forNoKeyUpdate()
    .execute();
  return rows.flatMap(({ id, sealed_secret: sealed, secret_origin: secretOrigin }) =>
    sealed === null || secretOrigin === 'hashed'
      ? []
      : [{ id, sealedSecret: Buffer.from(sealed), secretOrigin }],
  );
}
