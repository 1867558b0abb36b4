import type { SealedKey, SealedKeys } from '../../keys/rotate-encryption-key.ts';
import type { RecordsDatabase } from './records-database.ts';

/** What is sealed, in Postgres. */
export class PostgresSealedKeys implements SealedKeys {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async after(keyId: string | undefined, limit: number): Promise<readonly SealedKey[]> {
    const first = this.#db
      .selectFrom('consumer_keys')
      .select(['id', 'sealed_secret'])
      .orderBy('id')
      .limit(limit);
    const page = keyId === undefined ? first : first.where('id', '>', keyId);
    return (await page.execute()).map(sealedKeyOf);
  }

  async oldestAndNewest(limit: number): Promise<readonly SealedKey[]> {
    const kept = this.#db
      .selectFrom('consumer_keys')
      .select(['id', 'sealed_secret'])
      .where('sealed_secret', 'is not', null)
      .limit(limit);
    const [oldest, newest] = await Promise.all([
      kept.orderBy('id').execute(),
      kept.orderBy('id', 'desc').execute(),
    ]);
    return [...oldest, ...newest].map(sealedKeyOf);
  }

  async replace(key: SealedKey, lookup: Buffer, sealedSecret: Buffer): Promise<void> {
    await this.#db
      .updateTable('consumer_keys')
      .set({ lookup, sealed_secret: sealedSecret })
      .where('id', '=', key.id)
      .where('sealed_secret', '=', key.sealedSecret)
      .execute();
  }
}

function sealedKeyOf(row: {
  readonly id: string;
  readonly sealed_secret: Buffer | Uint8Array | null;
}): SealedKey {
  return { id: row.id, sealedSecret: row.sealed_secret && Buffer.from(row.sealed_secret) };
}
