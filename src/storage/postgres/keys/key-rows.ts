import { sql } from 'kysely';
import type { ChangeContext } from '../../../audit/change-context.ts';
import type { ConsumerKey } from '../../../keys/consumer-key.ts';
import type { NewConsumerKey } from '../../../keys/key-repository.ts';
import type { StoredSecret } from '../../../keys/secrets/stored-secret.ts';
import { isVisible } from '../../../permissions/visible-records.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { insertRows } from '../write-rows.ts';
import { KEY_COLUMNS, keyOfRow } from './consumer-keys-table.ts';

/** Selects keys with their rotations, for `keyOfRow`. */
export function selectKeys(db: RecordsDatabase) {
  return db
    .selectFrom('consumer_keys')
    .leftJoin('previous_secrets', 'previous_secrets.key_id', 'consumer_keys.id')
    .select(KEY_COLUMNS);
}

/** A key that is not stored yet. Without `managedDigest` no configuration manages it. */
export interface KeyToInsert {
  readonly key: NewConsumerKey;
  readonly managedDigest?: Buffer;
}

/** Inserts new keys with one statement. */
export function insertNewKeys(trx: RecordsDatabase, keys: readonly KeyToInsert[]): Promise<void> {
  return insertRows(trx, 'consumer_keys', keys.map(rowOf));
}

function rowOf({ key, managedDigest }: KeyToInsert) {
  return {
    ...editableColumns(key),
    created_at: new Date(key.createdAtMs),
    ...secretColumns(key),
    managed_by: key.managedBy,
    managed_digest: managedDigest ?? null,
  };
}

/** The columns of `consumer_keys` that an edit may change, with the id. */
export function editableColumns(key: ConsumerKey): Readonly<Record<string, unknown>> {
  return {
    id: key.id,
    version: key.version,
    updated_at: new Date(key.updatedAtMs),
    name: key.name,
    enabled: key.enabled,
    expires_at: key.expiresAtMs === null ? null : new Date(key.expiresAtMs),
    plan_id: key.planId,
    external_id: key.externalId,
    tags: key.tags,
    allowed_ips: key.allowedIps,
    allowed_origins: key.allowedOrigins,
    self_service: key.selfService,
    overrides: key.overrides,
    metadata: key.metadata,
  };
}

/** The columns of `consumer_keys` that hold a secret, without its version. */
export function secretColumns(secret: StoredSecret) {
  return {
    secret_origin: secret.secretOrigin,
    secret_hint: secret.secretHint,
    lookup: secret.lookup,
    digest_lookup: secret.digestLookup,
    sealed_secret: secret.sealedSecret,
    sealed_digest: secret.sealedDigest,
  };
}

/**
 * A key, locked with its secrets against changes and deletion until the transaction ends. Undefined if it does not exist or the change
 * can't see it.
 */
export async function lockedKey(
  trx: RecordsDatabase,
  keyId: string,
  change: Pick<ChangeContext, 'onlyTags'>,
): Promise<ConsumerKey | undefined> {
  return (await lockedKeys(trx, [keyId], change)).get(keyId);
}

/** The same for several keys, by id. They are locked in the order of their ids, so that two transactions that lock the same keys can't deadlock. */
export async function lockedKeys(
  trx: RecordsDatabase,
  keyIds: readonly string[],
  { onlyTags }: Pick<ChangeContext, 'onlyTags'>,
): Promise<ReadonlyMap<string, ConsumerKey>> {
  const locked = await trx
    .selectFrom('consumer_keys')
    .select('id')
    .where(hasId(keyIds))
    .orderBy('id')
    .forUpdate()
    .execute();
  // With a second statement: one that has waited for a lock reads only the locked rows as they are now, and secrets as they were before.
  const rows = await selectKeys(trx)
    .where(hasId(locked.map(({ id }) => id)))
    .orderBy('consumer_keys.id')
    .execute();
  const keys = rows.map(keyOfRow).filter(({ tags }) => isVisible(tags, onlyTags));
  return new Map(keys.map((key) => [key.id, key]));
}

/** Whether a key has one of the ids. */
export function hasId(keyIds: readonly string[]) {
  return sql<boolean>`consumer_keys.id = ANY (${keyIds}::text[])`;
}

/** Whether a key has all of the tags. */
export function hasTags(tags: readonly string[]) {
  return sql<boolean>`consumer_keys.tags @> ${tags}::text[]`;
}
