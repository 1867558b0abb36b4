import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import type { ChangeContext } from '../../../audit/change-context.ts';
import type { BoundKeys } from '../../../errors.ts';
import type { RecordVersion } from '../../../limiter/record-versions.ts';
import { auditedPlan } from '../../../plans/audited-plan.ts';
import { checkPlan } from '../../../plans/check-plan.ts';
import type { Plan } from '../../../plans/plan.ts';
import type {
  PlanChanges,
  PlanFilter,
  PlanRepository,
  PlanSelection,
} from '../../../plans/plan-repository.ts';
import { requireState } from '../../../platform/precondition.ts';
import type { AuditedChanges } from '../audit/audited-changes.ts';
import { countRows } from '../count-rows.ts';
import { hasTags } from '../keys/key-rows.ts';
import { snapshotVersion } from '../keys/key-snapshots.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { countBoundKeys } from './bound-keys.ts';
import { planOfRow, rowOfPlan } from './plans-table.ts';

const BATCH = 1000;
/** A key refers to the plan: `restrict_violation` since Postgres 18, `foreign_key_violation` before. */
const REFERRED_TO = new Set(['23001', '23503']);

/** Plans in Postgres. `defaultPlanId` names the plan of keys that are bound to none; null = unlimited. */
export class PostgresPlanRepository implements PlanRepository {
  readonly #db: RecordsDatabase;
  readonly #changes: AuditedChanges;
  readonly #defaultPlanId: string | null;

  constructor(db: RecordsDatabase, changes: AuditedChanges, defaultPlanId: string | null) {
    this.#db = db;
    this.#changes = changes;
    this.#defaultPlanId = defaultPlanId;
  }

  insert(plan: Plan, change: ChangeContext): Promise<boolean> {
    return this.#changes.make(change, async (trx, note) => {
      const inserted = await trx
        .insertInto('plans')
        .values(rowOfPlan(plan))
        .onConflict((conflict) => conflict.column('id').doNothing())
        .returning('id')
        .executeTakeFirst();
      if (inserted === undefined) return false;
      note({ action: 'plan.create', ...auditedPlan(null, plan) });
      return true;
    });
  }

  async find(planId: string): Promise<Plan | undefined> {
    const row = await this.#db.selectFrom('plans').selectAll().where('id', '=', planId).executeTakeFirst();
    return row && planOfRow(row);
  }

  async list({ text, afterId, limit }: PlanSelection): Promise<readonly Plan[]> {
    let page = this.#db.selectFrom('plans').selectAll().orderBy('id');
    if (text !== undefined) page = page.where(hasText(text));
    if (afterId !== undefined) page = page.where('id', '>', afterId);
    if (limit !== undefined) page = page.limit(limit);
    return (await page.execute()).map(planOfRow);
  }

  count({ text }: PlanFilter): Promise<number> {
    const plans = this.#db.selectFrom('plans');
    return countRows(text === undefined ? plans : plans.where(hasText(text)));
  }

  countBound(
    planIds: readonly string[],
    onlyTags: readonly string[],
  ): Promise<ReadonlyMap<string, BoundKeys>> {
    return countBoundKeys(this.#db, planIds, onlyTags);
  }

  update(planId: string, changes: PlanChanges, change: ChangeContext): Promise<Plan | undefined> {
    return this.#changes.make(change, async (trx, note) => {
      const before = await lockedPlan(trx, planId);
      if (before === undefined) return undefined;
      requireState(change.expects, before);
      const wanted = { ...before, ...changes };
      checkPlan(wanted);
      if (isDeepStrictEqual(wanted, before)) return before;
      const plan = await write(trx, wanted, change.atMs);
      note({ action: 'plan.update', ...auditedPlan(before, plan) });
      return plan;
    });
  }

  async delete(planId: string, change: ChangeContext): Promise<'deleted' | 'not_found' | BoundKeys> {
    const deleted = this.#changes.make(change, async (trx, note) => {
      const plan = await lockedPlan(trx, planId);
      if (plan === undefined) return 'not_found' as const;
      requireState(change.expects, plan);
      await trx.deleteFrom('plans').where('id', '=', planId).execute();
      note({ action: 'plan.delete', ...auditedPlan(plan, null) });
      return 'deleted' as const;
    });
    return deleted.catch((error: unknown) => this.#boundKeys(error, planId, change));
  }

  async replace(
    planId: string,
    byPlanId: string,
    change: ChangeContext,
  ): Promise<readonly RecordVersion[] | 'not_found' | 'other_not_found' | BoundKeys> {
    const replaced = this.#changes.make(change, async (trx, note) => {
      const [plan, other] = await lockedPlans(trx, planId, byPlanId);
      if (plan === undefined) return 'not_found' as const;
      if (other === undefined) return 'other_not_found' as const;
      requireState(change.expects, plan);
      const moved: RecordVersion[] = [];
      for (;;) {
        const keys = await moveKeys(trx, { from: planId, to: byPlanId }, change);
        if (keys.length === 0) break;
        for (const { id, name, tags, version } of keys) {
          const changes = { rateLimitId: { from: planId, to: byPlanId } };
          note({ action: 'key.update', target: { type: 'key', id, name, tags }, changes });
          moved.push({ keyId: id, version: snapshotVersion(version, other.version) });
        }
      }
      // Keys that this change can't see were not moved: because of them the delete fails, and everything is rolled back.
      await trx.deleteFrom('plans').where('id', '=', planId).execute();
      note({ action: 'plan.delete', ...auditedPlan(plan, null) });
      return moved;
    });
    return replaced.catch((error: unknown) => this.#boundKeys(error, planId, change));
  }

  /** Counts the keys because of which a plan can't be deleted. Rethrows any other error. */
  async #boundKeys(error: unknown, planId: string, { onlyTags }: ChangeContext): Promise<BoundKeys> {
    const isInUse = error instanceof Error && 'code' in error && REFERRED_TO.has(String(error.code));
    if (!isInUse) throw error;
    const bound = await this.countBound([planId], onlyTags);
    return bound.get(planId) ?? { boundKeys: 0, hasUnseenKeys: false };
  }

  async *keysUnder(planId: string): AsyncIterable<readonly RecordVersion[]> {
    let after = '';
    for (;;) {
      const rows = await this.#keysUnder(planId, after);
      const last = rows.at(-1);
      if (last === undefined) {
        return;
      }
      yield rows.map((row) => ({ keyId: row.id, version: snapshotVersion(row.version, row.plan_version) }));
      after = last.id;
    }
  }

  #keysUnder(planId: string, after: string) {
    return this.#db
      .selectFrom('consumer_keys')
      .innerJoin('plans', (join) => join.on('plans.id', '=', planId))
      .select(['consumer_keys.id', 'consumer_keys.version', 'plans.version as plan_version'])
      .where((where) =>
        planId === this.#defaultPlanId
          ? where.or([where('plan_id', '=', planId), where('plan_id', 'is', null)])
          : where('plan_id', '=', planId),
      )
      .where('consumer_keys.id', '>', after)
      .orderBy('consumer_keys.id')
      .limit(BATCH)
      .execute();
  }
}

function hasText(text: string) {
  const pattern = text.replaceAll(/[\\%_]/g, '\\$&');
  return sql<boolean>`fold_case(id || chr(10) || description) LIKE '%' || fold_case(${pattern}) || '%'`;
}

/** Locks both plans, by id: until the transaction ends, no other transaction changes or deletes them, or binds a key to them. */
async function lockedPlans(
  trx: RecordsDatabase,
  ...planIds: readonly [string, string]
): Promise<readonly [Plan | undefined, Plan | undefined]> {
  const rows = await trx
    .selectFrom('plans')
    .selectAll()
    .where('id', 'in', [...planIds])
    .orderBy('id')
    .forUpdate()
    .execute();
  const plans = new Map(rows.map((row) => [row.id, planOfRow(row)]));
  return [plans.get(planIds[0]), plans.get(planIds[1])];
}

/** Keys that one statement moves: each statement has a timeout. */
const MOVED_AT_ONCE = 5000;

interface MovedKey {
  readonly id: string;
  readonly name: string;
  readonly tags: readonly string[];
  readonly version: number;
}

/** Moves some of the keys that the change can see (`onlyTags`), at most `MOVED_AT_ONCE`. */
async function moveKeys(
  trx: RecordsDatabase,
  { from, to }: { readonly from: string; readonly to: string },
  { atMs, onlyTags }: ChangeContext,
): Promise<readonly MovedKey[]> {
  const { rows } = await sql<MovedKey>`
    UPDATE consumer_keys SET plan_id = ${to}, updated_at = ${new Date(atMs)}, version = version + 1
    WHERE id = ANY (ARRAY(
      SELECT id FROM consumer_keys WHERE plan_id = ${from} AND ${hasTags(onlyTags)}
      ORDER BY id LIMIT ${MOVED_AT_ONCE} FOR UPDATE
    ))
    RETURNING id, name, tags, version`.execute(trx);
  return rows;
}

/**
 * Locks a plan: until the transaction ends, no other transaction changes or deletes it, or binds a key to it. A new key that names
 * the plan does not wait, an imported one does.
 */
async function lockedPlan(trx: RecordsDatabase, planId: string): Promise<Plan | undefined> {
  const row = await trx
    .selectFrom('plans')
    .selectAll()
    .where('id', '=', planId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  return row && planOfRow(row);
}

async function write(trx: RecordsDatabase, plan: Plan, updatedAtMs: number): Promise<Plan> {
  const { id, created_at, managed_by, ...columns } = rowOfPlan({
    ...plan,
    updatedAtMs,
    version: plan.version + 1,
  });
  const row = await trx
    .updateTable('plans')
    .set(columns)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return planOfRow(row);
}
