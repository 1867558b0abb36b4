import { sql } from 'kysely';
import type {
  ResealedKey,
  SealedKey,
  SealedKeys,
  SecretAge,
} from '../../../keys/secrets/rotate-sealed-keys.ts';
import type { RecordsDatabase } from '../records-database.ts';

interface SealedRow {
  readonly id: string;
  readonly sealed_secret: Uint8Array | null;
  readonly sealed_digest: Uint8Array | null;
}

const SEALED = sql`sealed_secret, sealed_digest`;
/** The table of present or of previous secrets, its column with the key's id, and which rows are valid. */
const PLACES = {
  present: { table: sql.table('consumer_keys'), id: sql.ref('id'), isValid: sql`true` },
  previous: {
    table: sql.table('previous_secrets'),
    id: sql.ref('key_id'),
    isValid: sql`valid_until > now()`,
  },
} as const;

/** The sealed secrets of keys, in Postgres. */
export class PostgresSealedKeys implements SealedKeys {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async after(age: SecretAge, keyId: string | undefined, limit: number): Promise<readonly SealedKey[]> {
    const { table, id, isValid } = PLACES[age];
    const { rows } = await sql<SealedRow>`
      SELECT ${id} AS id, ${SEALED} FROM ${table} WHERE ${isValid} AND ${id} > ${keyId ?? ''}
      ORDER BY ${id} LIMIT ${limit}`.execute(this.#db);
    return rows.map(sealedKeyOf);
  }

  async oldestAndNewest(limit: number): Promise<readonly SealedKey[]> {
    const { rows } = await sql<SealedRow>`
      WITH kept AS (SELECT id, ${SEALED} FROM consumer_keys WHERE coalesce(sealed_secret, sealed_digest) IS NOT NULL)
      (SELECT * FROM kept ORDER BY id LIMIT ${limit}) UNION ALL (SELECT * FROM kept ORDER BY id DESC LIMIT ${limit})`.execute(
      this.#db,
    );
    return rows.map(sealedKeyOf);
  }

  async replace(age: SecretAge, key: SealedKey, by: ResealedKey): Promise<void> {
    const { table, id } = PLACES[age];
    await sql`
      UPDATE ${table} SET lookup = ${by.lookup}, digest_lookup = ${by.digestLookup},
        sealed_secret = ${by.sealedSecret}, sealed_digest = ${by.sealedDigest}
      WHERE ${id} = ${key.id} AND coalesce(sealed_secret, sealed_digest) = ${key.sealedSecret ?? key.sealedDigest}`.execute(
      this.#db,
    );
  }
}

function sealedKeyOf({ id, ...row }: SealedRow): SealedKey {
  return {
    id,
    sealedSecret: row.sealed_secret && Buffer.from(row.sealed_secret),
    sealedDigest: row.sealed_digest && Buffer.from(row.sealed_digest),
  };
}
