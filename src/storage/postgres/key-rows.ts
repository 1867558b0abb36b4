import { sql } from 'kysely';
import type { ChangeContext } from '../../audit/change-context.ts';
import type { ConsumerKey } from '../../keys/consumer-key.ts';
import { isVisible } from '../../keys/key-tags.ts';
import { KEY_COLUMNS, keyOfRow } from './consumer-keys-table.ts';
import type { RecordsDatabase } from './records-database.ts';

/** Selects keys with their rotations, for `keyOfRow`. */
export function selectKeys(db: RecordsDatabase) {
  return db
    .selectFrom('consumer_keys')
    .leftJoin('previous_secrets', 'previous_secrets.key_id', 'consumer_keys.id')
    .select(KEY_COLUMNS);
}

/** Until the transaction ends, nobody else changes or deletes it, or its secrets. Undefined where it does not exist for the change. */
export async function lockedKey(
  trx: RecordsDatabase,
  keyId: string,
  { onlyTags }: Pick<ChangeContext, 'onlyTags'>,
): Promise<ConsumerKey | undefined> {
  const row = await selectKeys(trx).where('id', '=', keyId).forUpdate('consumer_keys').executeTakeFirst();
  const key = row && keyOfRow(row);
  return key !== undefined && isVisible(key.tags, onlyTags) ? key : undefined;
}

/** Whether a key has all of the tags. */
export function hasTags(tags: readonly string[]) {
  return sql<boolean>`consumer_keys.tags @> ${tags}::text[]`;
}
