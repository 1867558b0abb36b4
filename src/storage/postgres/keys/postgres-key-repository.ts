import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { changedFields } from '../../../audit/audit-entry.ts';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { auditedKey, keyTarget } from '../../../keys/audited-key.ts';
import type { ConsumerKey, KeySnapshot } from '../../../keys/consumer-key.ts';
import type {
  FoundSnapshot,
  KeyChanges,
  KeyRepository,
  NewConsumerKey,
  OutdatedKey,
  StoredKey,
  UpdatedKey,
  UpdateFailure,
} from '../../../keys/key-repository.ts';
import { MAX_TAGS } from '../../../keys/key-tags.ts';
import type { RecordVersion } from '../../../limiter/record-versions.ts';
import type { PathCase } from '../../../paths/path-readings.ts';
import { PlanLimitsCache } from '../../../plans/plan-limits-cache.ts';
import { requireState } from '../../../platform/precondition.ts';
import type { AuditedChanges, NoteAction } from '../audit/audited-changes.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { KEY_COLUMNS, keyOfRow, NO_ROTATION, OWN_KEY_COLUMNS } from './consumer-keys-table.ts';
import { editableColumns, hasTags, lockedKey, rowOfKey } from './key-rows.ts';
import {
  OWNER_COLUMNS,
  type SnapshotOptions,
  type SnapshotRow,
  selectSnapshots,
  snapshotOfRow,
  snapshotVersion,
} from './key-snapshots.ts';

/** How keys are read. */
export interface KeyReading {
  /** The plan of keys that are bound to none; null = unlimited. */
  readonly defaultPlanId: string | null;
  /** The snapshots of keys have their `owner`. */
  readonly withOwners?: boolean | undefined;
  /** How the patterns of plans are compared with paths; `insensitive` if missing. */
  readonly pathCase?: PathCase;
}

/** Keys in Postgres. */
export class PostgresKeyRepository implements KeyRepository {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;
  readonly #defaultPlanId: string | null;
  readonly #snapshots: SnapshotOptions;
  readonly #withOwners: boolean;

  constructor(
    db: RecordsDatabase,
    changes: AuditedChanges,
    { defaultPlanId, withOwners = false, pathCase = 'insensitive' }: KeyReading,
  ) {
    this.#db = db;
    this.#changes = changes;
    this.#withOwners = withOwners;
    this.#defaultPlanId = defaultPlanId;
    this.#snapshots = { defaultPlanId, plans: new PlanLimitsCache(pathCase) };
  }

  insert(key: NewConsumerKey, change: ChangeContext): Promise<boolean> {
    return this.#changes.make(change, async (trx, note) => {
      if (key.planId !== null && !(await lockedPlan(trx, key.planId, 'forKeyShare'))) return false;
      const inserted = await trx
        .insertInto('consumer_keys')
        .values(rowOfKey(key))
        .returning(OWN_KEY_COLUMNS)
        .executeTakeFirstOrThrow();
      const made = keyOfRow({ ...inserted, ...NO_ROTATION });
      note({ action: 'key.create', target: keyTarget(made), changes: changedFields(null, auditedKey(made)) });
      return true;
    });
  }

  exists(keyId: string, onlyTags: readonly string[]): Promise<boolean> {
    return this.#exists(this.#db, keyId, onlyTags);
  }

  async find(keyId: string): Promise<StoredKey | undefined> {
    const row = await selectSnapshots(this.#db, this.#defaultPlanId)
      .select([...KEY_COLUMNS, 'consumer_keys.sealed_secret'])
      .where('consumer_keys.id', '=', keyId)
      .executeTakeFirst();
    return (
      row && {
        key: keyOfRow(row),
        sealedSecret: row.sealed_secret && Buffer.from(row.sealed_secret),
        snapshot: snapshotOfRow(row, this.#snapshots),
      }
    );
  }

  async findSnapshotsByLookup(lookups: readonly Buffer[]): Promise<readonly FoundSnapshot[]> {
    if (lookups.length === 0) return [];
    const snapshots = this.#selectCopies();
    const rows = await snapshots
      .select(['consumer_keys.lookup as found_lookup', 'consumer_keys.secret_version as found_version'])
      .where('consumer_keys.lookup', 'in', lookups)
      .unionAll(
        snapshots
          .select((select) => [
            select.ref('previous_secrets.lookup').$notNull().as('found_lookup'),
            select.ref('previous_secrets.version').$notNull().as('found_version'),
          ])
          .where('previous_secrets.lookup', 'in', lookups),
      )
      .execute();
    return rows.map((row) => ({
      lookup: Buffer.from(row.found_lookup),
      secretVersion: row.found_version,
      snapshot: snapshotOrError(row, this.#snapshots),
    }));
  }

  async findOutdated(copies: readonly RecordVersion[]): Promise<readonly OutdatedKey[]> {
    if (copies.length === 0) return [];
    const ids = copies.map(({ keyId }) => keyId);
    const versions = copies.map(({ version }) => version);
    // Returns only copies that differ, which are very few. With an array of ids Postgres uses the primary key's index; with a join it
    // would read the table.
    const { rows } = await sql<OutdatedRow>`
      with copies as materialized (
        select id, version from unnest(${ids}::text[], ${versions}::text[]) as copy (id, version)
      ), records as materialized (
        select consumer_keys.id, consumer_keys.version || '.' || coalesce(plans.version, 0) as version
        from consumer_keys
        left join plans on plans.id = coalesce(consumer_keys.plan_id, ${this.#defaultPlanId}::text)
        where consumer_keys.id = any (array(select id from copies))
      )
      select copies.id, copies.version, records.id is null as gone
      from copies left join records on records.id = copies.id
      where records.version is distinct from copies.version`.execute(this.#db);
    return rows.map(({ id, version, gone }) => ({ keyId: id, version, isGone: gone }));
  }

  async findOriginEntries(entries: readonly string[]): Promise<readonly string[]> {
    if (entries.length === 0) return [];
    const { rows } = await sql<{ readonly entry: string }>`
      select entry from unnest(${entries}::text[]) as entry
      where exists (
        select from consumer_keys where allowed_origins @> array[entry] and allowed_origins is not null
      )`.execute(this.#db);
    return rows.map(({ entry }) => entry);
  }

  findSnapshotById(keyId: string): Promise<KeySnapshot | undefined> {
    return this.#findSnapshot(this.#db, keyId);
  }

  async findSnapshotsOrErrors(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeySnapshot | Error>> {
    const rows = await this.#selectCopies()
      .where('consumer_keys.id', 'in', sql<string>`(SELECT unnest(${keyIds}::text[]))`)
      .execute();
    return new Map(rows.map((row) => [row.id, snapshotOrError(row, this.#snapshots)]));
  }

  async findSnapshotsById(keyIds: readonly string[]): Promise<readonly KeySnapshot[]> {
    const found = await this.findSnapshotsOrErrors(keyIds);
    return [...found.values()].map((snapshot) => {
      if (snapshot instanceof Error) throw snapshot;
      return snapshot;
    });
  }

  async findNames(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (keyIds.length === 0) return new Map();
    const rows = await this.#db
      .selectFrom('consumer_keys')
      .select(['id', 'name'])
      .where('id', 'in', sql<string>`(SELECT unnest(${keyIds}::text[]))`)
      .execute();
    return new Map(rows.map(({ id, name }) => [id, name]));
  }

  update(keyId: string, changes: KeyChanges, change: ChangeContext): Promise<UpdatedKey | UpdateFailure> {
    return this.#changes.make(change, (trx, note) => this.#update(trx, { keyId, changes, change, note }));
  }

  bind(
    keyId: string,
    planId: string,
    change: ChangeContext,
  ): Promise<KeySnapshot | 'key_not_found' | 'plan_not_found'> {
    return this.#changes.make(change, async (trx, note) => {
      const updated = await this.#update(trx, { keyId, changes: { planId }, change, note });
      // Does not happen: a binding leaves the tags alone.
      if (updated === 'too_many_tags') return 'key_not_found';
      if (typeof updated === 'string') return updated;
      return (await this.#findSnapshot(trx, keyId)) ?? 'key_not_found';
    });
  }

  async planExists(planId: string): Promise<boolean> {
    const plan = await this.#db.selectFrom('plans').select('id').where('id', '=', planId).executeTakeFirst();
    return plan !== undefined;
  }

  delete(keyId: string, change: ChangeContext): Promise<boolean> {
    return this.#changes.make(change, async (trx, note) => {
      const key = await lockedKey(trx, keyId, change);
      if (key === undefined) return false;
      requireState(change.expects, key);
      await trx.deleteFrom('consumer_keys').where('id', '=', keyId).execute();
      note({ action: 'key.delete', target: keyTarget(key), changes: changedFields(auditedKey(key), null) });
      return true;
    });
  }

  async #update(
    trx: RecordsDatabase,
    { keyId, changes, change, note }: KeyUpdate,
  ): Promise<UpdatedKey | UpdateFailure> {
    // The version of the plan goes into the snapshot.
    if (typeof changes.planId === 'string' && !(await lockedPlan(trx, changes.planId, 'forShare')))
      return (await this.#exists(trx, keyId, change.onlyTags)) ? 'plan_not_found' : 'key_not_found';
    const before = await lockedKey(trx, keyId, change);
    if (before === undefined) return 'key_not_found';
    requireState(change.expects, before);
    const wanted = changedKey(before, changes);
    if (wanted.tags.length > MAX_TAGS) return 'too_many_tags';
    if (!isDeepStrictEqual(wanted, before)) {
      await write(trx, wanted, change.atMs);
      const changed = changedFields(auditedKey(before), auditedKey(wanted));
      note({ action: 'key.update', target: keyTarget(wanted), changes: changed });
    }
    const row = await selectSnapshots(trx, this.#defaultPlanId)
      .select(KEY_COLUMNS)
      .where('consumer_keys.id', '=', keyId)
      .executeTakeFirstOrThrow();
    return { key: keyOfRow(row), version: snapshotVersion(row.version, row.applied_version) };
  }

  /** Selects the snapshots that replicas keep. */
  #selectCopies() {
    return selectSnapshots(this.#db, this.#defaultPlanId).$if(this.#withOwners, (copies) =>
      copies.select(OWNER_COLUMNS),
    );
  }

  async #exists(db: RecordsDatabase, keyId: string, onlyTags: readonly string[]): Promise<boolean> {
    const key = await db
      .selectFrom('consumer_keys')
      .select('id')
      .where('id', '=', keyId)
      .where(hasTags(onlyTags))
      .executeTakeFirst();
    return key !== undefined;
  }

  async #findSnapshot(db: RecordsDatabase, keyId: string): Promise<KeySnapshot | undefined> {
    const row = await selectSnapshots(db, this.#defaultPlanId)
      .where('consumer_keys.id', '=', keyId)
      .executeTakeFirst();
    return row && snapshotOfRow(row, this.#snapshots);
  }
}

/** An edit within a transaction. */
interface KeyUpdate {
  readonly keyId: string;
  readonly changes: KeyChanges;
  readonly change: ChangeContext;
  readonly note: NoteAction;
}

/** Whether there is such a plan. Until the transaction ends it can't be deleted; with `forShare` it can't be changed either. */
async function lockedPlan(
  trx: RecordsDatabase,
  planId: string,
  lock: 'forKeyShare' | 'forShare',
): Promise<boolean> {
  const query = trx.selectFrom('plans').select('id').where('id', '=', planId);
  return (await query[lock]().executeTakeFirst()) !== undefined;
}

function changedKey(key: ConsumerKey, changes: KeyChanges): ConsumerKey {
  const { addTags = [], removeTags = [], tags = key.tags, removeOverride, ...fields } = changes;
  const all = new Set([...tags, ...addTags]);
  const { overrides } = { ...key, ...fields };
  return {
    ...{ ...key, ...fields },
    tags: [...all].filter((tag) => !removeTags.includes(tag)),
    overrides: Object.fromEntries(Object.entries(overrides).filter(([id]) => id !== removeOverride)),
  };
}

async function write(trx: RecordsDatabase, key: ConsumerKey, updatedAtMs: number): Promise<void> {
  await trx
    .updateTable('consumer_keys')
    .set((set) => ({
      ...editableColumns(key),
      updated_at: new Date(updatedAtMs),
      version: set('version', '+', 1),
    }))
    .where('id', '=', key.id)
    .execute();
}

interface OutdatedRow {
  readonly id: string;
  readonly version: string;
  readonly gone: boolean;
}

function snapshotOrError(row: SnapshotRow, options: SnapshotOptions): KeySnapshot | Error {
  try {
    return snapshotOfRow(row, options);
  } catch (error) {
    return error instanceof Error ? error : new Error('The snapshot can not be read.', { cause: error });
  }
}
