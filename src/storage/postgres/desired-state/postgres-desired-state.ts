import { type Selectable, sql } from 'kysely';
import type { ChangeContext } from '../../../audit/change-context.ts';
import type {
  DesiredStateStore,
  ExportSelection,
  PresentKey,
  PresentPlan,
  PresentState,
  PresentWebhook,
  StateSelection,
  StateTransaction,
} from '../../../desired-state/desired-state-store.ts';
import type { Webhook } from '../../../events/webhook.ts';
import type { ConsumerKey } from '../../../keys/consumer-key.ts';
import type { Plan } from '../../../plans/plan.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { AuditedChanges } from '../audit/audited-changes.ts';
import type { WebhooksTable } from '../events/events-tables.ts';
import { webhookOfRow } from '../events/webhook-rows.ts';
import { keyOfRow } from '../keys/consumer-keys-table.ts';
import { hasTags, selectKeys } from '../keys/key-rows.ts';
import { lockImports } from '../keys/write-imported-keys.ts';
import { isLimitedTo } from '../limited-rows.ts';
import { planOfRow } from '../plans/plans-table.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { appliedDigestOf, writeStateChanges } from './write-state-changes.ts';

/** Keys that are exported with one query. */
const READ_AT_ONCE = 200;
/**
 * Keys that are exported together. V8 allocates objects in the old generation once it has found a hundred in use that one place in the code has made:
 * fewer of them, which are used before the next ones are made, stay young.
 */
const YIELDED_AT_ONCE = 50;

/** The plans and keys of configurations, in Postgres. `defaultPlanId` names the plan of keys that are bound to none; null = unlimited. */
export class PostgresDesiredState implements DesiredStateStore {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;
  readonly #defaultPlanId: string | null;

  constructor(db: RecordsDatabase, changes: AuditedChanges, defaultPlanId: string | null) {
    this.#db = db;
    this.#changes = changes;
    this.#defaultPlanId = defaultPlanId;
  }

  async read(selection: StateSelection): Promise<PresentState> {
    const plans = await plansOf(this.#db, selection).execute();
    const keys = await keysOf(this.#db, selection).execute();
    const webhooks = await webhooksOf(this.#db, selection).execute();
    return presentState(plans, keys, webhooks);
  }

  change<Result>(
    selection: StateSelection,
    change: ChangeContext,
    work: (transaction: StateTransaction) => Promise<Result>,
  ): Promise<Result> {
    return this.#changes.make(change, async (trx, note) => {
      await sql`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.configurations})`.execute(trx);
      // Locks plans, imports, keys and webhooks in this order, each by id, as all changes do: they may wait for each other, but never deadlock.
      const plans = await plansOf(trx, selection).forNoKeyUpdate().execute();
      if (await bringsNewSecrets(trx, selection)) await lockImports(trx);
      const keys = await keysOf(trx, selection).forUpdate('consumer_keys').execute();
      const webhooks = await webhooksOf(trx, selection).forUpdate().execute();
      return work({
        present: presentState(plans, keys, webhooks),
        appliedDigest: await appliedDigestOf(trx, selection.owner),
        write: (changes) =>
          writeStateChanges(trx, changes, {
            note,
            owner: selection.owner,
            atMs: change.atMs,
            defaultPlanId: this.#defaultPlanId,
            onlyTags: selection.onlyTags,
          }),
      });
    });
  }

  async exportPlans(owner: string | undefined): Promise<readonly Plan[]> {
    const plans = this.#db.selectFrom('plans').selectAll().orderBy('id');
    const rows = await (owner === undefined ? plans : plans.where('managed_by', '=', owner)).execute();
    return rows.map(planOfRow);
  }

  async *exportKeys(selection: ExportSelection): AsyncIterable<readonly ConsumerKey[]> {
    let last: ConsumerKey | undefined;
    let isShared = false;
    for (;;) {
      // In the order of an index, and shared ids are left out here: to group them in each statement would read all that follows.
      const rows = await selectKeys(this.#db)
        .where('external_id', 'is not', null)
        .where(sql<boolean>`(external_id, id) > (${last?.externalId ?? ''}, ${last?.id ?? ''})`)
        .where(isSelected(selection))
        .orderBy('external_id')
        .orderBy('id')
        .limit(READ_AT_ONCE)
        .execute();
      let unique: ConsumerKey[] = [];
      for (const row of rows) {
        const key = keyOfRow(row);
        if (last?.externalId === key.externalId) isShared = true;
        else {
          if (last !== undefined && !isShared) unique.push(last);
          isShared = false;
        }
        last = key;
        if (unique.length < YIELDED_AT_ONCE) continue;
        yield unique;
        unique = [];
      }
      const isEnd = rows.length < READ_AT_ONCE;
      if (isEnd && last !== undefined && !isShared) unique.push(last);
      if (unique.length > 0) yield unique;
      if (isEnd) return;
    }
  }

  async exportWebhooks({ owner, onlyTags }: ExportSelection): Promise<readonly Webhook[]> {
    let webhooks = this.#db
      .selectFrom('webhooks')
      .selectAll()
      .where('external_id', 'is not', null)
      .where(isLimitedTo(onlyTags))
      .orderBy('external_id');
    if (owner !== undefined) webhooks = webhooks.where('managed_by', '=', owner);
    const byExternalId = Map.groupBy(await webhooks.execute(), ({ external_id }) => external_id);
    return [...byExternalId.values()].flatMap((rows) =>
      rows.length === 1 ? rows.map((row) => webhookOfRow(row).webhook) : [],
    );
  }

  async countLeftOut(selection: ExportSelection): Promise<number> {
    const { rows } = await sql<{ left_out: number }>`
      SELECT coalesce(sum(keys) FILTER (WHERE external_id IS NULL OR keys > 1), 0)::bigint AS left_out FROM (
        SELECT external_id, count(*) AS keys FROM consumer_keys WHERE ${isSelected(selection)} GROUP BY external_id
      ) AS owners`.execute(this.#db);
    return rows[0]?.left_out ?? 0;
  }
}

async function bringsNewSecrets(
  trx: RecordsDatabase,
  { hashedExternalIds }: StateSelection,
): Promise<boolean> {
  if (hashedExternalIds.length === 0) return false;
  const { rows } = await sql`
    SELECT FROM unnest(${hashedExternalIds}::text[]) AS wanted (external_id)
    WHERE NOT EXISTS (SELECT FROM consumer_keys WHERE consumer_keys.external_id = wanted.external_id) LIMIT 1`.execute(
    trx,
  );
  return rows.length > 0;
}

function isSelected({ owner, onlyTags }: ExportSelection) {
  return owner === undefined
    ? hasTags(onlyTags)
    : sql<boolean>`managed_by = ${owner} AND ${hasTags(onlyTags)}`;
}

function plansOf(db: RecordsDatabase, { owner, planIds }: StateSelection) {
  return db
    .selectFrom('plans')
    .selectAll()
    .where((where) =>
      where.or([where('managed_by', '=', owner), sql<boolean>`id = ANY (${planIds}::text[])`]),
    )
    .orderBy('id');
}

function keysOf(db: RecordsDatabase, { owner, hasAllOfOwner, externalIds, onlyTags }: StateSelection) {
  const named = sql`SELECT id FROM consumer_keys WHERE external_id = ANY (${externalIds}::text[])`;
  const owned = hasAllOfOwner ? sql`UNION SELECT id FROM consumer_keys WHERE managed_by = ${owner}` : sql``;
  // Selects the ids first: each condition has an index, but an OR of the two has none.
  return selectKeys(db)
    .select('consumer_keys.managed_digest')
    .where('consumer_keys.id', 'in', sql<string>`(${named} ${owned})`)
    .where(hasTags(onlyTags))
    .orderBy('consumer_keys.id');
}

function webhooksOf(
  db: RecordsDatabase,
  { owner, hasAllOfOwner, webhookExternalIds, onlyTags }: StateSelection,
) {
  const named = sql<boolean>`external_id = ANY (${webhookExternalIds}::text[])`;
  return db
    .selectFrom('webhooks')
    .selectAll()
    .where((where) =>
      hasAllOfOwner ? where.or([named, where('managed_by', '=', owner)]) : where.and([named]),
    )
    .where(isLimitedTo(onlyTags))
    .orderBy('id');
}

function presentState(
  plans: readonly Parameters<typeof presentPlan>[0][],
  keys: readonly Parameters<typeof presentKey>[0][],
  webhooks: readonly Selectable<WebhooksTable>[],
): PresentState {
  return {
    plans: plans.map(presentPlan),
    keys: keys.map(presentKey),
    webhooks: webhooks.map(presentWebhook),
  };
}

function presentWebhook(row: Selectable<WebhooksTable>): PresentWebhook {
  return { webhook: webhookOfRow(row).webhook, managedDigest: digestOf(row.managed_digest) };
}

function presentPlan(row: Parameters<typeof planOfRow>[0]): PresentPlan {
  return { plan: planOfRow(row), managedDigest: digestOf(row.managed_digest) };
}

function presentKey(
  row: Parameters<typeof keyOfRow>[0] & { readonly managed_digest: Uint8Array | null },
): PresentKey {
  return { key: keyOfRow(row), managedDigest: digestOf(row.managed_digest) };
}

function digestOf(bytes: Uint8Array | null): Buffer | null {
  return bytes && Buffer.from(bytes);
}
