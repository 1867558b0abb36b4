import type { ConsumerKey, KeyGrant } from '../../keys/consumer-key.ts';
import type {
  FoundGrant,
  KeyChanges,
  KeyRepository,
  NewConsumerKey,
  StoredKey,
  UpdatedKey,
} from '../../keys/key-repository.ts';
import { KEY_COLUMNS, keyOfRow } from './consumer-keys-table.ts';
import { type GrantRow, grantOfRow, grantVersion, selectGrants } from './key-grants.ts';
import type { RecordsDatabase } from './records-database.ts';

/** Keys in Postgres. A key without a plan of its own has the one that `defaultPlanId` names; null = unlimited. */
export class PostgresKeyRepository implements KeyRepository {
  readonly #db: RecordsDatabase;
  readonly #defaultPlanId: string | null;

  constructor(db: RecordsDatabase, { defaultPlanId }: { readonly defaultPlanId: string | null }) {
    this.#db = db;
    this.#defaultPlanId = defaultPlanId;
  }

  async insert(key: NewConsumerKey): Promise<void> {
    await this.#db
      .insertInto('consumer_keys')
      .values({
        id: key.id,
        name: key.name,
        created_at: new Date(key.createdAtMs),
        updated_at: new Date(key.updatedAtMs),
        enabled: key.enabled,
        expires_at: dateOf(key.expiresAtMs),
        lookup: key.lookup,
        sealed_secret: key.sealedSecret,
        plan_id: key.planId,
      })
      .execute();
  }

  async list(limit: number, beforeId?: string): Promise<readonly ConsumerKey[]> {
    const newest = this.#db
      .selectFrom('consumer_keys')
      .select(KEY_COLUMNS)
      .orderBy('id', 'desc')
      .limit(limit);
    const page = beforeId === undefined ? newest : newest.where('id', '<', beforeId);
    return (await page.execute()).map(keyOfRow);
  }

  exists(keyId: string): Promise<boolean> {
    return this.#exists(this.#db, keyId);
  }

  async find(keyId: string): Promise<StoredKey | undefined> {
    const row = await selectGrants(this.#db, this.#defaultPlanId)
      .select([...KEY_COLUMNS, 'consumer_keys.sealed_secret'])
      .where('consumer_keys.id', '=', keyId)
      .executeTakeFirst();
    return (
      row && {
        key: keyOfRow(row),
        sealedSecret: row.sealed_secret && Buffer.from(row.sealed_secret),
        grant: grantOfRow(row, this.#defaultPlanId),
      }
    );
  }

  async findGrantsByLookup(lookups: readonly Buffer[]): Promise<readonly FoundGrant[]> {
    if (lookups.length === 0) return [];
    const rows = await selectGrants(this.#db, this.#defaultPlanId)
      .select('consumer_keys.lookup')
      .where('consumer_keys.lookup', 'in', lookups)
      .execute();
    return rows.map((row) => ({
      lookup: Buffer.from(row.lookup),
      grant: grantOrError(row, this.#defaultPlanId),
    }));
  }

  findGrantById(keyId: string): Promise<KeyGrant | undefined> {
    return this.#findGrant(this.#db, keyId);
  }

  update(keyId: string, changes: KeyChanges, updatedAtMs: number): Promise<UpdatedKey | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      await trx
        .updateTable('consumer_keys')
        .set((set) => ({
          ...(changes.name !== undefined && { name: changes.name }),
          ...(changes.enabled !== undefined && { enabled: changes.enabled }),
          ...(changes.expiresAtMs !== undefined && { expires_at: dateOf(changes.expiresAtMs) }),
          updated_at: new Date(updatedAtMs),
          version: set('version', '+', 1),
        }))
        .where('id', '=', keyId)
        .execute();
      const row = await selectGrants(trx, this.#defaultPlanId)
        .select(KEY_COLUMNS)
        .where('consumer_keys.id', '=', keyId)
        .executeTakeFirst();
      return row && { key: keyOfRow(row), version: grantVersion(row.version, row.applied_version) };
    });
  }

  bind(
    keyId: string,
    planId: string,
    updatedAtMs: number,
  ): Promise<KeyGrant | 'key_not_found' | 'plan_not_found'> {
    return this.#db.transaction().execute(async (trx) => {
      // Shared lock: until we commit, nobody deletes or edits the plan whose version goes into the grant.
      const plan = await trx
        .selectFrom('plans')
        .select('id')
        .where('id', '=', planId)
        .forShare()
        .executeTakeFirst();
      if (plan === undefined) {
        return (await this.#exists(trx, keyId)) ? 'plan_not_found' : 'key_not_found';
      }
      await trx
        .updateTable('consumer_keys')
        .set((set) => ({
          plan_id: planId,
          updated_at: new Date(updatedAtMs),
          version: set('version', '+', 1),
        }))
        .where('id', '=', keyId)
        .execute();
      return (await this.#findGrant(trx, keyId)) ?? 'key_not_found';
    });
  }

  async planExists(planId: string): Promise<boolean> {
    const plan = await this.#db.selectFrom('plans').select('id').where('id', '=', planId).executeTakeFirst();
    return plan !== undefined;
  }

  async delete(keyId: string): Promise<boolean> {
    const deleted = await this.#db
      .deleteFrom('consumer_keys')
      .where('id', '=', keyId)
      .returning('id')
      .executeTakeFirst();
    return deleted !== undefined;
  }

  async #exists(db: RecordsDatabase, keyId: string): Promise<boolean> {
    const key = await db.selectFrom('consumer_keys').select('id').where('id', '=', keyId).executeTakeFirst();
    return key !== undefined;
  }

  async #findGrant(db: RecordsDatabase, keyId: string): Promise<KeyGrant | undefined> {
    const row = await selectGrants(db, this.#defaultPlanId)
      .where('consumer_keys.id', '=', keyId)
      .executeTakeFirst();
    return row && grantOfRow(row, this.#defaultPlanId);
  }
}

function grantOrError(row: GrantRow, defaultPlanId: string | null): KeyGrant | Error {
  try {
    return grantOfRow(row, defaultPlanId);
  } catch (error) {
    return error instanceof Error ? error : new Error('The grant can not be read.', { cause: error });
  }
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
