import { sql } from 'kysely';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { auditedKey } from '../../../keys/audited-key.ts';
import type { KeySnapshot } from '../../../keys/consumer-key.ts';
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
import { recordOf } from '../../../keys/new-key.ts';
import type { RecordVersion } from '../../../limiter/record-versions.ts';
import type { PathCase } from '../../../paths/path-readings.ts';
import { PlanLimitsCache } from '../../../plans/plan-limits-cache.ts';
import { requireState } from '../../../platform/precondition.ts';
import type { AuditedChanges } from '../audit/audited-changes.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { KEY_COLUMNS, keyOfRow } from './consumer-keys-table.ts';
import { editKeys, existingKeys, lockedPlan } from './key-edits.ts';
import { hasId, insertNewKeys, lockedKeys } from './key-rows.ts';
import {
  lookUpQuery,
  OWNER_COLUMNS,
  type SnapshotOptions,
  type SnapshotRow,
  selectSnapshots,
  snapshotOfRow,
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
  /** Built with the first look-up. */
  #lookUp: ReturnType<typeof lookUpQuery> | undefined;

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
      await insertNewKeys(trx, [{ key }]);
      note({ action: 'key.create', ...auditedKey(null, recordOf(key)) });
      return true;
    });
  }

  existing(keyIds: readonly string[], onlyTags: readonly string[]): Promise<ReadonlySet<string>> {
    return existingKeys(this.#db, keyIds, onlyTags);
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
    this.#lookUp ??= lookUpQuery(this.#selectCopies());
    const { rows } = await this.#db.executeQuery(this.#lookUp(lookups));
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

  async findSnapshotsOrErrors(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeySnapshot | Error>> {
    const rows = await this.#selectCopies()
      .where('consumer_keys.id', 'in', sql<string>`(SELECT unnest(${keyIds}::text[]))`)
      .execute();
    return new Map(rows.map((row) => [row.id, snapshotOrError(row, this.#snapshots)]));
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

  updateAll(
    keyIds: readonly string[],
    changes: KeyChanges,
    change: ChangeContext,
  ): Promise<ReadonlyMap<string, UpdatedKey | UpdateFailure>> {
    const defaultPlanId = this.#defaultPlanId;
    return this.#changes.make(change, (trx, note) =>
      editKeys(trx, { keyIds, changes, change, note, defaultPlanId }),
    );
  }

  bind(
    keyId: string,
    planId: string,
    change: ChangeContext,
  ): Promise<KeySnapshot | 'key_not_found' | 'plan_not_found'> {
    return this.#changes.make(change, async (trx, note) => {
      const edit = { keyIds: [keyId], changes: { planId }, change, note };
      const updates = await editKeys(trx, { ...edit, defaultPlanId: this.#defaultPlanId });
      const updated = updates.get(keyId);
      // A binding leaves the tags alone.
      if (updated === undefined || updated === 'too_many_tags') return 'key_not_found';
      if (typeof updated === 'string') return updated;
      const row = await selectSnapshots(trx, this.#defaultPlanId)
        .where('consumer_keys.id', '=', keyId)
        .executeTakeFirstOrThrow();
      return snapshotOfRow(row, this.#snapshots);
    });
  }

  async planExists(planId: string): Promise<boolean> {
    const plan = await this.#db.selectFrom('plans').select('id').where('id', '=', planId).executeTakeFirst();
    return plan !== undefined;
  }

  deleteAll(keyIds: readonly string[], change: ChangeContext): Promise<ReadonlySet<string>> {
    return this.#changes.make(change, async (trx, note) => {
      const keys = await lockedKeys(trx, keyIds, change);
      for (const key of keys.values()) {
        requireState(change.expects, key);
        note({ action: 'key.delete', ...auditedKey(key, null) });
      }
      await trx
        .deleteFrom('consumer_keys')
        .where(hasId([...keys.keys()]))
        .execute();
      return new Set(keys.keys());
    });
  }

  /** Selects the snapshots that replicas keep. */
  #selectCopies() {
    return selectSnapshots(this.#db, this.#defaultPlanId).$if(this.#withOwners, (copies) =>
      copies.select(OWNER_COLUMNS),
    );
  }
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
