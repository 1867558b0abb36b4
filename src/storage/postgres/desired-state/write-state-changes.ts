import { sql } from 'kysely';
import { changedFields } from '../../../audit/audit-entry.ts';
import type { StateChanges } from '../../../desired-state/desired-state-store.ts';
import { ManagedElsewhere, PlanInUse, SecretsTaken } from '../../../errors.ts';
import { auditedKey, keyTarget } from '../../../keys/audited-key.ts';
import type { ConsumerKey } from '../../../keys/consumer-key.ts';
import { recordOf } from '../../../keys/new-key.ts';
import type { RecordVersion } from '../../../limiter/record-versions.ts';
import { auditedPlan, planTarget } from '../../../plans/audited-plan.ts';
import type { Plan } from '../../../plans/plan.ts';
import type { NoteAction } from '../audit/audited-changes.ts';
import { insertNewKeys } from '../keys/key-rows.ts';
import { snapshotVersion } from '../keys/key-snapshots.ts';
import { beginImport, takenOf } from '../keys/write-imported-keys.ts';
import { countBoundKeys } from '../plans/bound-keys.ts';
import { rowOfPlan } from '../plans/plans-table.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { noteWebhookActions, writeWebhooks } from './write-webhooks.ts';

/** Rows in one statement: each statement has a timeout. */
const ROWS_AT_ONCE = 1000;

interface WriteOptions {
  readonly note: NoteAction;
  readonly owner: string;
  readonly atMs: number;
  readonly defaultPlanId: string | null;
  readonly onlyTags: readonly string[];
}

/**
 * `StateTransaction.write`, within a transaction that has locked the records that it changes. Each kind of change of plans and keys takes
 * one statement per thousand rows.
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
  const keyVersions = await updateKeys(trx, changes.changedKeys, options);
  // Plans are deleted last, after their keys have been moved to other plans.
  await deletePlans(trx, changes.deletedPlans, options);
  await writeWebhooks(trx, changes, options.atMs);
  await noteDigests(trx, 'plans', changes.notedPlans);
  await noteDigests(trx, 'consumer_keys', changes.notedKeys);
  await noteDigests(trx, 'webhooks', changes.notedWebhooks);
  await noteApplied(trx, changes.appliedDigest, options);
  noteAll(changes, options);
  return snapshotVersions(trx, changes.changedKeys, { keyVersions, defaultPlanId: options.defaultPlanId });
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
  if (plans.length === 0) return;
  const rows = plans.map(({ wanted, managedDigest }) => ({
    ...{ id: wanted.id, description: wanted.description, limit: wanted.limit, period: wanted.period },
    ...{ additional_limits: wanted.additionalLimits, costs: wanted.costs },
    ...{ managed_by: wanted.managedBy, managed_digest: managedDigest.toString('hex') },
  }));
  await sql`
    UPDATE plans SET description = wanted.description, "limit" = wanted.limit, period = wanted.period,
      additional_limits = wanted.additional_limits, costs = wanted.costs, managed_by = wanted.managed_by,
      managed_digest = decode(wanted.managed_digest, 'hex'), updated_at = ${new Date(atMs)}, version = version + 1
    FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS wanted (
      id text, description text, "limit" bigint, period text, additional_limits jsonb, costs jsonb, managed_by text, managed_digest text
    )
    WHERE plans.id = wanted.id`.execute(trx);
}

async function deleteKeys(trx: RecordsDatabase, keys: readonly ConsumerKey[]): Promise<void> {
  for (const some of slicesOf(keys)) {
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

/** Resolves with the new version of each key. */
async function updateKeys(
  trx: RecordsDatabase,
  keys: StateChanges['changedKeys'],
  { atMs }: WriteOptions,
): Promise<ReadonlyMap<string, number>> {
  const versions = new Map<string, number>();
  for (const some of slicesOf(keys)) {
    const wanted = some.map(({ wanted: key, managedDigest }) => rowOfWanted(key, managedDigest));
    const { rows } = await sql<{ id: string; version: number }>`
      UPDATE consumer_keys SET name = wanted.name, enabled = wanted.enabled, expires_at = wanted.expires_at,
        plan_id = wanted.plan_id, overrides = wanted.overrides, external_id = wanted.external_id, tags = wanted.tags,
        metadata = wanted.metadata, allowed_ips = wanted.allowed_ips, allowed_origins = wanted.allowed_origins,
        self_service = wanted.self_service, managed_by = wanted.managed_by,
        managed_digest = decode(wanted.managed_digest, 'hex'), updated_at = ${new Date(atMs)}, version = version + 1
      FROM jsonb_to_recordset(${JSON.stringify(wanted)}::jsonb) AS wanted (
        id text, name text, enabled boolean, expires_at timestamptz, plan_id text, overrides jsonb, external_id text, tags text[],
        metadata jsonb, allowed_ips text[], allowed_origins text[], self_service text[], managed_by text, managed_digest text
      )
      WHERE consumer_keys.id = wanted.id
      RETURNING consumer_keys.id, consumer_keys.version`.execute(trx);
    for (const { id, version } of rows) versions.set(id, version);
  }
  return versions;
}

function rowOfWanted(key: ConsumerKey, managedDigest: Buffer) {
  return {
    id: key.id,
    name: key.name,
    enabled: key.enabled,
    expires_at: key.expiresAtMs === null ? null : new Date(key.expiresAtMs).toISOString(),
    plan_id: key.planId,
    overrides: key.overrides,
    external_id: key.externalId,
    tags: key.tags,
    metadata: key.metadata,
    allowed_ips: key.allowedIps,
    allowed_origins: key.allowedOrigins,
    self_service: key.selfService,
    managed_by: key.managedBy,
    managed_digest: managedDigest.toString('hex'),
  };
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
  for (const { plan } of changes.newPlans)
    note({
      action: 'plan.create',
      target: planTarget(plan),
      changes: changedFields(null, auditedPlan(plan)),
    });
  for (const { before, wanted } of changes.changedPlans) {
    const fields = changedFields(auditedPlan(before), auditedPlan(wanted));
    note({ action: 'plan.update', target: planTarget(wanted), changes: fields });
  }
  for (const key of changes.deletedKeys)
    note({ action: 'key.delete', target: keyTarget(key), changes: changedFields(auditedKey(key), null) });
  for (const { key } of changes.newKeys) {
    const fields = changedFields(null, auditedKey(recordOf(key)));
    note({ action: 'key.create', target: keyTarget(key), changes: fields });
  }
  for (const { before, wanted } of changes.changedKeys) {
    const fields = changedFields(auditedKey(before), auditedKey(wanted));
    note({ action: 'key.update', target: keyTarget(wanted), changes: fields });
  }
  for (const plan of changes.deletedPlans)
    note({
      action: 'plan.delete',
      target: planTarget(plan),
      changes: changedFields(auditedPlan(plan), null),
    });
}

/** The versions of the changed keys' snapshots. */
async function snapshotVersions(
  trx: RecordsDatabase,
  keys: StateChanges['changedKeys'],
  {
    keyVersions,
    defaultPlanId,
  }: { readonly keyVersions: ReadonlyMap<string, number>; readonly defaultPlanId: string | null },
): Promise<readonly RecordVersion[]> {
  const planIds = [...new Set(keys.flatMap(({ wanted }) => wanted.planId ?? defaultPlanId ?? []))];
  const { rows } = await sql<{ id: string; version: number }>`
    SELECT id, version FROM plans WHERE id = ANY (${planIds}::text[])`.execute(trx);
  const planVersions = new Map(rows.map(({ id, version }) => [id, version]));
  return keys.map(({ wanted: { id, planId } }) => {
    const planVersion = planVersions.get(planId ?? defaultPlanId ?? '') ?? null;
    return { keyId: id, version: snapshotVersion(keyVersions.get(id) ?? 0, planVersion) };
  });
}

function* slicesOf<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += ROWS_AT_ONCE)
    yield items.slice(start, start + ROWS_AT_ONCE);
}
