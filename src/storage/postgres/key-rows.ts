import type { ConsumerKey } from '../../keys/consumer-key.ts';
import { KEY_COLUMNS, keyOfRow } from './consumer-keys-table.ts';
import type { RecordsDatabase } from './records-database.ts';

/** Selects keys with their rotations, for `keyOfRow`. */
export function selectKeys(db: RecordsDatabase) {
  return db
    .selectFrom('consumer_keys')
    .leftJoin('previous_secrets', 'previous_secrets.key_id', 'consumer_keys.id')
    .select(KEY_COLUMNS);
}

/** Until the transaction ends, nobody else changes or deletes it, or its secrets. */
export async function lockedKey(trx: RecordsDatabase, keyId: string): Promise<ConsumerKey | undefined> {
  const row = await selectKeys(trx).where('id', '=', keyId).forUpdate('consumer_keys').executeTakeFirst();
  return row && keyOfRow(row);
}
