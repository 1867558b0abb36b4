import { sql } from 'kysely';
import type { StateChanges } from '../../../desired-state/desired-state-store.ts';
import { ManagedElsewhere, PlanInUse, SecretsTaken } from '../../../errors.ts';
import { auditedKey } from '../../../keys/audited-key.ts';
import type { ConsumerKey } from '../../../keys/consumer-key.ts';
import { recordOf } from '../../../keys/new-key.ts';
import type { RecordVersion } from '../../../limiter/record-versions.ts';
import { auditedPlan } from '../../../plans/audited-plan.ts';
import type { Plan } from '../../../plans/plan.ts';
import type { NoteAction } from '../audit/audited-changes.ts';
import { planVersionsOf } from '../keys/key-edits.ts';
import { editableColumns, insertNewKeys } from '../keys/key-rows.ts';
import { snapshotVersion } from '../keys/key-snapshots.ts';
import { beginImport, takenOf } from '../keys/write-imported-keys.ts';
import { countBoundKeys } from '../plans/bound-keys.ts';
import { rowOfPlan } from '../plans/plans-table.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { updateRows } from '../write-rows.ts';
import { noteWebhookActions, writeWebhooks } from './write-webhooks.ts';

/** Rows in one statement: each statement has a timeout. */
const ROWS_AT_ONCE = 1000;
/** Keys in one deletion, each of which may remove thousands of rows of usage. */
const DELETED_AT_ONCE = 50;

interface WriteOptions {
  readonly note: NoteAction;
  readonly owner: string;
  readonly atMs: number;
  readonly defaultPlanId: string | null;
  readonly onlyTags: readonly string[];
}

/**
 * `StateTransaction.write`, within a transaction that has locked the records that it changes. Each kind of change of plans and keys takes
 * one statement per thousand rows, the deletion of keys one per fifty.
 */
export async function writeStateChanges(
  trx: RecordsDatabase,
  changes: StateChanges,
  options: WriteOptions,
): Promise<readonly RecordVersion[]> {
  await insertPlans(trx, changes.newPlans);
  await updatePlans(trx, changes.changedPlans, options);
  // Deletes keys before it inserts new ones, which may have the same secrets: a key with another externalId is another key.
  await deleteKeys(trx, changes.deletedKeys);
  await insertKeys(trx, changes.newKeys);
  await updateKeys(trx, changes.changedKeys, options);
  // Plans are deleted last, after their keys have been moved to other plans.
  await deletePlans(trx, changes.deletedPlans, options);
  await writeWebhooks(trx, changes, options.atMs);
  await noteDigests(trx, 'plans', changes.notedPlans);
  await noteDigests(trx, 'consumer_keys', changes.notedKeys);
  await noteDigests(trx, 'webhooks', changes.notedWebhooks);
  await noteApplied(trx, changes.appliedDigest, options);
  noteAll(changes, options);
  return snapshotVersions(trx, changes.changedKeys, options);
}

/** The digest of the owner's configuration that was applied last; undefined if there is none. */
export async function appliedDigestOf(trx: RecordsDatabase, owner: string): Promise<Buffer | undefined> {
  const row = await trx
    .selectFrom('applied_configurations')
    .select('digest')
    .where('owner', '=', owner)
    .executeTakeFirst();
  return row && Buffer.from(row.digest);
}

async function noteApplied(
  trx: RecordsDatabase,
  digest: Buffer,
  { owner, atMs }: WriteOptions,
): Promise<void> {
  const applied = { digest, applied_at: new Date(atMs) };
  await trx
    .insertInto('applied_configurations')
    .values({ owner, ...applied })
    .onConflict((conflict) => conflict.column('owner').doUpdateSet(applied))
    .execute();
}

async function insertPlans(trx: RecordsDatabase, plans: StateChanges['newPlans']): Promise<void> {
  if (plans.length === 0) return;
  const rows = plans.map(({ plan, managedDigest }) => ({
    ...rowOfPlan(plan),
    managed_digest: managedDigest,
  }));
  const made = await trx
    .insertInto('plans')
    .values(rows)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .execute();
  // A plan that was made elsewhere since the records were read: there was no row to lock.
  const ids = new Set(made.map(({ id }) => id));
  const elsewhere = rows.filter(({ id }) => !ids.has(id));
  if (elsewhere.length > 0)
    throw new ManagedElsewhere(elsewhere.map(({ id }) => ({ type: 'plan', id, reason: 'not_managed' })));
}

async function updatePlans(
  trx: RecordsDatabase,
  plans: StateChanges['changedPlans'],
  { atMs }: WriteOptions,
): Promise<void> {
  const rows = plans.map(({ wanted, managedDigest }) => ({
    ...{ id: wanted.id, description: wanted.description, limit: wanted.limit, period: wanted.period },
    ...{ additional_limits: wanted.additionalLimits, costs: wanted.costs },
    ...{ managed_by: wanted.managedBy, managed_digest: managedDigest },
    ...{ updated_at: new Date(atMs), version: wanted.version + 1 },
  }));
  await updateRows(trx, 'plans', rows);
}

async function deleteKeys(trx: RecordsDatabase, keys: readonly ConsumerKey[]): Promise<void> {
  for (const some of slicesOf(keys, DELETED_AT_ONCE)) {
    const ids = some.map(({ id }) => id);
    await sql`DELETE FROM consumer_keys WHERE id = ANY (${ids}::text[])`.execute(trx);
  }
}

async function insertKeys(trx: RecordsDatabase, keys: StateChanges['newKeys']): Promise<void> {
  const imported = keys.flatMap(({ key, match }) => (match === undefined ? [] : [{ key, match }]));
  if (imported.length > 0) {
    await beginImport(trx);
    const taken = await takenOf(
      trx,
      imported.map(({ match }) => match),
    );
    const rejected = imported.filter((_, index) => taken[index]).map(({ key }) => key.externalId ?? key.id);
    if (rejected.length > 0) throw new SecretsTaken(rejected);
  }
  for (const some of slicesOf(keys)) await insertNewKeys(trx, some);
}

async function updateKeys(
  trx: RecordsDatabase,
  keys: StateChanges['changedKeys'],
  { atMs }: WriteOptions,
): Promise<void> {
  for (const some of slicesOf(keys)) {
    const rows = some.map(({ wanted, managedDigest }) => ({
      ...editableColumns({ ...wanted, updatedAtMs: atMs, version: wanted.version + 1 }),
      ...{ managed_by: wanted.managedBy, managed_digest: managedDigest },
    }));
    await updateRows(trx, 'consumer_keys', rows);
  }
}

async function deletePlans(
  trx: RecordsDatabase,
  plans: readonly Plan[],
  { onlyTags }: WriteOptions,
): Promise<void> {
  if (plans.length === 0) return;
  const ids = plans.map(({ id }) => id);
  // From here on no new key can name them either, so that the count below stays true.
  await sql`SELECT FROM plans WHERE id = ANY (${ids}::text[]) ORDER BY id FOR UPDATE`.execute(trx);
  const [inUse] = await countBoundKeys(trx, ids, onlyTags);
  if (inUse !== undefined) throw new PlanInUse(...inUse);
  await sql`DELETE FROM plans WHERE id = ANY (${ids}::text[])`.execute(trx);
}

async function noteDigests(
  trx: RecordsDatabase,
  table: 'plans' | 'consumer_keys' | 'webhooks',
  noted: StateChanges['notedKeys'],
): Promise<void> {
  for (const some of slicesOf(noted)) {
    const ids = some.map(({ id }) => id);
    const digests = some.map(({ managedDigest }) => managedDigest);
    await sql`
      UPDATE ${sql.table(table)} AS managed SET managed_digest = noted.digest
      FROM unnest(${ids}::text[], ${digests}::bytea[]) AS noted (id, digest) WHERE managed.id = noted.id`.execute(
      trx,
    );
  }
}

/** Notes each change, and that the configuration was applied if there are any. */
function noteAll(changes: StateChanges, { note, owner, onlyTags }: WriteOptions): void {
  let records = 0;
  const noteOne: NoteAction = (action) => {
    records += 1;
    note(action);
  };
  noteActions(changes, noteOne);
  noteWebhookActions(changes, noteOne);
  if (records === 0) return;
  const target = { type: 'configuration', id: owner, name: null, tags: onlyTags } as const;
  note({ action: 'config.apply', target, changes: { changedRecords: { from: null, to: records } } });
}

/** In the order in which the changes are written. */
function noteActions(changes: StateChanges, note: NoteAction): void {
  for (const { plan } of changes.newPlans) note({ action: 'plan.create', ...auditedPlan(null, plan) });
  for (const { before, wanted } of changes.changedPlans)
    note({ action: 'plan.update', ...auditedPlan(before, wanted) });
  for (const key of changes.deletedKeys) note({ action: 'key.delete', ...auditedKey(key, null) });
  for (const { key } of changes.newKeys) note({ action: 'key.create', ...auditedKey(null, recordOf(key)) });
  for (const { before, wanted } of changes.changedKeys)
    note({ action: 'key.update', ...auditedKey(before, wanted) });
  for (const plan of changes.deletedPlans) note({ action: 'plan.delete', ...auditedPlan(plan, null) });
}

/** The versions of the changed keys' snapshots. */
async function snapshotVersions(
  trx: RecordsDatabase,
  keys: StateChanges['changedKeys'],
  { defaultPlanId }: WriteOptions,
): Promise<readonly RecordVersion[]> {
  const planIds = keys.map(({ wanted }) => wanted.planId ?? defaultPlanId);
  const planVersions = await planVersionsOf(trx, new Set(planIds));
  return keys.map(({ wanted: { id, planId, version } }) => {
    const planVersion = planVersions.get(planId ?? defaultPlanId) ?? null;
    return { keyId: id, version: snapshotVersion(version + 1, planVersion) };
  });
}

function* slicesOf<Item>(items: readonly Item[], atOnce = ROWS_AT_ONCE): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += atOnce) yield items.slice(start, start + atOnce);
}
