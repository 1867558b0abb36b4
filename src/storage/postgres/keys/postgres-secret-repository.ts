import { type Selectable, sql, type Updateable } from 'kysely';
import type { AuditAction } from '../../../audit/audit-entry.ts';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { auditedKey } from '../../../keys/audited-key.ts';
import type { ConsumerKey, KeyRotation } from '../../../keys/consumer-key.ts';
import type { UpdatedKey } from '../../../keys/key-repository.ts';
import type {
  FoundKey,
  ImportedKey,
  ImportedSecrets,
  ImportFailure,
  ImportOptions,
  KeptSecret,
  PreviousSecretUse,
  SecretReplacement,
  SecretRepository,
} from '../../../keys/secrets/secret-repository.ts';
import type { SecretMatch } from '../../../keys/secrets/stored-secret.ts';
import { requireState } from '../../../platform/precondition.ts';
import type { AuditedChanges, NoteAction } from '../audit/audited-changes.ts';
import type { RecordsDatabase } from '../records-database.ts';
import {
  type ConsumerKeysTable,
  KEY_COLUMNS,
  keyOfRow,
  type PreviousSecretsTable,
  ROTATION_COLUMNS,
  rotationOf,
} from './consumer-keys-table.ts';
import { hasTags, lockedKey, secretColumns, selectKeys } from './key-rows.ts';
import { selectSnapshots, snapshotVersion } from './key-snapshots.ts';
import { beginImport, countOutOfSight, importKeys, isTaken } from './write-imported-keys.ts';

/**
 * The secrets of keys, in Postgres: the present ones in the rows of the keys, previous ones in `previous_secrets`. Every change of a
 * key's secrets locks the key's row first.
 */
export class PostgresSecretRepository implements SecretRepository {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;
  readonly #defaultPlanId: string | null;

  constructor(db: RecordsDatabase, changes: AuditedChanges, defaultPlanId: string | null) {
    this.#db = db;
    this.#changes = changes;
    this.#defaultPlanId = defaultPlanId;
  }

  async findRotation(
    keyId: string,
    onlyTags: readonly string[],
  ): Promise<KeyRotation | null | 'key_not_found'> {
    const row = await this.#db
      .selectFrom('consumer_keys')
      .leftJoin('previous_secrets', 'previous_secrets.key_id', 'consumer_keys.id')
      .select(ROTATION_COLUMNS)
      .where('consumer_keys.id', '=', keyId)
      .where(hasTags(onlyTags))
      .executeTakeFirst();
    return row === undefined ? 'key_not_found' : rotationOf(row);
  }

  rotate(
    keyId: string,
    { secret, match, replaces, previousValidUntilMs, expiresAtMs }: SecretReplacement,
    change: ChangeContext,
  ): Promise<UpdatedKey | 'key_not_found' | 'rotation_in_progress' | 'secret_taken' | 'secret_replaced'> {
    const { atMs } = change;
    return this.#changes.make(change, async (trx, note) => {
      if (match !== undefined) {
        await beginImport(trx);
        if (await isTaken(trx, match)) return 'secret_taken';
      }
      const before = await lockedKey(trx, keyId, change);
      if (before === undefined) return 'key_not_found';
      requireState(change.expects, before);
      if ((await validPreviousSecret(trx, keyId, atMs)) !== undefined) return 'rotation_in_progress';
      if (replaces !== undefined && (await secretVersionOf(trx, keyId)) !== replaces)
        return 'secret_replaced';
      // There may be a previous secret that is no longer valid.
      await trx.deleteFrom('previous_secrets').where('key_id', '=', keyId).execute();
      if (previousValidUntilMs > atMs)
        await keepSecret(trx, keyId, { atMs, validUntilMs: previousValidUntilMs });
      const columns = {
        ...secretColumns(secret),
        secret_version: before.version + 1,
        ...(expiresAtMs !== undefined && { expires_at: expiresAtMs === null ? null : new Date(expiresAtMs) }),
      };
      return this.#write(trx, { before, columns, action: 'key.rotate', atMs, note });
    });
  }

  endRotation(
    keyId: string,
    keep: KeptSecret,
    change: ChangeContext,
  ): Promise<UpdatedKey | 'key_not_found' | 'no_rotation'> {
    const { atMs } = change;
    return this.#changes.make(change, async (trx, note) => {
      const before = await lockedKey(trx, keyId, change);
      if (before === undefined) return 'key_not_found';
      requireState(change.expects, before);
      const previous = await validPreviousSecret(trx, keyId, atMs);
      if (previous === undefined) return 'no_rotation';
      await trx.deleteFrom('previous_secrets').where('key_id', '=', keyId).execute();
      const columns = keep === 'new' ? {} : columnsOfPrevious(previous);
      return this.#write(trx, { before, columns, action: 'key.end-rotation', atMs, note });
    });
  }

  import(
    keys: readonly ImportedKey[],
    options: ImportOptions,
    change: ChangeContext,
  ): Promise<readonly (ImportFailure | undefined)[]> {
    return this.#changes.make(change, (trx, note) => importKeys(trx, keys, { ...options, note }));
  }

  isTaken(match: SecretMatch): Promise<boolean> {
    return isTaken(this.#db, match);
  }

  countOutOfSight(matches: readonly SecretMatch[], onlyTags: readonly string[]): Promise<number> {
    return countOutOfSight(this.#db, matches, onlyTags);
  }

  async findBySecret({ lookups, digestLookups }: SecretMatch): Promise<FoundKey | undefined> {
    const values = [...lookups, ...digestLookups];
    const rows = await selectKeys(this.#db)
      .select(['consumer_keys.lookup as found_lookup', (key) => key.lit<boolean>(false).as('is_previous')])
      .where('consumer_keys.lookup', 'in', values)
      .unionAll(
        selectKeys(this.#db)
          .select((key) => [
            key.ref('previous_secrets.lookup').$notNull().as('found_lookup'),
            key.lit<boolean>(true).as('is_previous'),
          ])
          .where('previous_secrets.lookup', 'in', values),
      )
      .execute();
    const found = values
      .map((value) => rows.find((row) => value.equals(row.found_lookup)))
      .find((row) => row !== undefined);
    return found && { key: keyOfRow(found), isPrevious: found.is_previous };
  }

  async importedSecrets(): Promise<ImportedSecrets> {
    const { rows } = await sql<ImportedSecrets>`
      select version,
        exists (select from consumer_keys where secret_origin = 'given')
          or exists (select from previous_secrets where origin = 'given') as given,
        exists (select from consumer_keys where secret_origin = 'hashed')
          or exists (select from previous_secrets where origin = 'hashed') as hashed
      from secret_imports`.execute(this.#db);
    const [imports] = rows;
    if (imports === undefined) throw new Error('The table secret_imports has lost its row.');
    return imports;
  }

  async noteUses(uses: readonly PreviousSecretUse[]): Promise<void> {
    const keyIds = uses.map(({ keyId }) => keyId);
    const versions = uses.map(({ secretVersion }) => secretVersion);
    const instants = uses.map(({ atMs }) => new Date(atMs));
    await sql`
      update previous_secrets set last_used_at = greatest(last_used_at, used.at)
      from unnest(${keyIds}::text[], ${versions}::bigint[], ${instants}::timestamptz[]) as used (key_id, version, at)
      where previous_secrets.key_id = used.key_id and previous_secrets.version = used.version`.execute(
      this.#db,
    );
  }

  async #write(trx: RecordsDatabase, { before, columns, action, atMs, note }: KeyWrite): Promise<UpdatedKey> {
    await trx
      .updateTable('consumer_keys')
      .set((set) => ({ ...columns, updated_at: new Date(atMs), version: set('version', '+', 1) }))
      .where('id', '=', before.id)
      .execute();
    const row = await selectSnapshots(trx, this.#defaultPlanId)
      .select(KEY_COLUMNS)
      .where('consumer_keys.id', '=', before.id)
      .executeTakeFirstOrThrow();
    const key = keyOfRow(row);
    note({ action, ...auditedKey(before, key) });
    return { key, version: snapshotVersion(row.version, row.applied_version) };
  }
}

/** A change of a key's secrets within a transaction. */
interface KeyWrite {
  readonly before: ConsumerKey;
  readonly columns: Updateable<ConsumerKeysTable>;
  readonly action: AuditAction;
  readonly atMs: number;
  readonly note: NoteAction;
}

/** Makes the key's present secret its previous one. */
async function keepSecret(
  trx: RecordsDatabase,
  keyId: string,
  { atMs, validUntilMs }: { readonly atMs: number; readonly validUntilMs: number },
): Promise<void> {
  await trx
    .insertInto('previous_secrets')
    .columns([...PREVIOUS_COLUMNS, 'key_id', 'rotated_at', 'valid_until'])
    .expression((select) =>
      select
        .selectFrom('consumer_keys')
        .select((key) => [
          ...PRESENT_COLUMNS,
          'id',
          key.cast<Date>(key.val(new Date(atMs)), 'timestamptz').as('rotated_at'),
          key.cast<Date>(key.val(new Date(validUntilMs)), 'timestamptz').as('valid_until'),
        ])
        .where('id', '=', keyId),
    )
    .execute();
}

/** The columns of a secret in `previous_secrets`, and those of `consumer_keys` in the same order. */
const PREVIOUS_COLUMNS = [
  'version',
  'origin',
  'hint',
  'lookup',
  'digest_lookup',
  'sealed_secret',
  'sealed_digest',
] as const;
const PRESENT_COLUMNS = [
  'secret_version',
  'secret_origin',
  'secret_hint',
  'lookup',
  'digest_lookup',
  'sealed_secret',
  'sealed_digest',
] as const;

async function secretVersionOf(trx: RecordsDatabase, keyId: string): Promise<number | undefined> {
  const row = await trx
    .selectFrom('consumer_keys')
    .select('secret_version')
    .where('id', '=', keyId)
    .executeTakeFirst();
  return row?.secret_version;
}

function validPreviousSecret(trx: RecordsDatabase, keyId: string, atMs: number) {
  return trx
    .selectFrom('previous_secrets')
    .selectAll()
    .where('key_id', '=', keyId)
    .where('valid_until', '>', new Date(atMs))
    .executeTakeFirst();
}

function columnsOfPrevious(previous: Selectable<PreviousSecretsTable>) {
  return {
    secret_version: previous.version,
    secret_origin: previous.origin,
    secret_hint: previous.hint,
    lookup: previous.lookup,
    digest_lookup: previous.digest_lookup,
    sealed_secret: previous.sealed_secret,
    sealed_digest: previous.sealed_digest,
  };
}
