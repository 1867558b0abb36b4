import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { auditedKey } from '../../../keys/audited-key.ts';
import type { ConsumerKey } from '../../../keys/consumer-key.ts';
import type { KeyChanges, UpdatedKey, UpdateFailure } from '../../../keys/key-repository.ts';
import { MAX_TAGS } from '../../../permissions/visible-records.ts';
import { requireState } from '../../../platform/precondition.ts';
import type { NoteAction } from '../audit/audited-changes.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { updateRows } from '../write-rows.ts';
import { editableColumns, hasId, hasTags, lockedKeys } from './key-rows.ts';
import { snapshotVersion } from './key-snapshots.ts';

/** The same edit of several keys. */
export interface KeysEdit {
  readonly keyIds: readonly string[];
  readonly changes: KeyChanges;
  readonly change: ChangeContext;
  readonly note: NoteAction;
  /** The plan of keys that are bound to none; null = unlimited. */
  readonly defaultPlanId: string | null;
}

/** `KeyRepository.updateAll`, within a transaction: five statements or so, however many keys it edits. */
export async function editKeys(
  trx: RecordsDatabase,
  { keyIds, changes, change, note, defaultPlanId }: KeysEdit,
): Promise<ReadonlyMap<string, UpdatedKey | UpdateFailure>> {
  const updates = new Map<string, UpdatedKey | UpdateFailure>(keyIds.map((id) => [id, 'key_not_found']));
  // The version of the plan goes into the snapshot.
  if (typeof changes.planId === 'string' && !(await lockedPlan(trx, changes.planId, 'forShare'))) {
    for (const id of await existingKeys(trx, keyIds, change.onlyTags)) updates.set(id, 'plan_not_found');
    return updates;
  }
  const keys = await lockedKeys(trx, keyIds, change);
  const updated = new Map<string, ConsumerKey>();
  const edits: KeyEdit[] = [];
  for (const id of keyIds) {
    const before = keys.get(id);
    if (before === undefined) continue;
    requireState(change.expects, before);
    const wanted = changedKey(before, changes);
    if (wanted.tags.length > MAX_TAGS) {
      updates.set(id, 'too_many_tags');
      continue;
    }
    updated.set(id, before);
    if (isDeepStrictEqual(wanted, before)) continue;
    const after = { ...wanted, updatedAtMs: new Date(change.atMs).getTime(), version: before.version + 1 };
    updated.set(id, after);
    edits.push({ before, after });
    note({ action: 'key.update', ...auditedKey(before, after) });
  }
  await write(trx, edits);
  const appliedPlanId = ({ planId }: ConsumerKey) => planId ?? defaultPlanId;
  const planVersions = await planVersionsOf(trx, new Set([...updated.values()].map(appliedPlanId)));
  for (const [id, key] of updated) {
    const planVersion = planVersions.get(appliedPlanId(key)) ?? null;
    updates.set(id, { key, version: snapshotVersion(key.version, planVersion) });
  }
  return updates;
}

/** The versions of plans, by id. */
export async function planVersionsOf(
  trx: RecordsDatabase,
  planIds: ReadonlySet<string | null>,
): Promise<ReadonlyMap<string | null, number>> {
  const rows = await trx
    .selectFrom('plans')
    .select(['id', 'version'])
    .where(sql<boolean>`id = ANY (${[...planIds]}::text[])`)
    .execute();
  return new Map(rows.map(({ id, version }) => [id, version]));
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

/** A key before and after an edit. */
interface KeyEdit {
  readonly before: ConsumerKey;
  readonly after: ConsumerKey;
}

/** Writes the columns that differ for any of the keys, with one statement: triggers look at each column that is written. */
async function write(trx: RecordsDatabase, edits: readonly KeyEdit[]): Promise<void> {
  const keys = edits.map(({ before, after }) => ({
    before: editableColumns(before),
    after: editableColumns(after),
  }));
  const names = Object.keys(keys[0]?.after ?? {}).filter((name) =>
    keys.some(({ before, after }) => !isDeepStrictEqual(before[name], after[name])),
  );
  const rows = keys.map(({ after }) =>
    Object.fromEntries(['id', ...names].map((name) => [name, after[name]])),
  );
  await updateRows(trx, 'consumer_keys', rows);
}

/** Those of the keys that exist and have all of the tags. */
export async function existingKeys(
  db: RecordsDatabase,
  keyIds: readonly string[],
  onlyTags: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('consumer_keys')
    .select('id')
    .where(hasId(keyIds))
    .where(hasTags(onlyTags))
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/** Whether there is such a plan. Until the transaction ends it can't be deleted; with `forShare` it can't be changed either. */
export async function lockedPlan(
  trx: RecordsDatabase,
  planId: string,
  lock: 'forKeyShare' | 'forShare',
): Promise<boolean> {
  const query = trx.selectFrom('plans').select('id').where('id', '=', planId);
  return (await query[lock]().executeTakeFirst()) !== undefined;
}
