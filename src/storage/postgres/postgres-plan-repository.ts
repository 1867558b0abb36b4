import { isDeepStrictEqual } from 'node:util';
import { changedFields } from '../../audit/audit-entry.ts';
import type { ChangeContext } from '../../audit/change-context.ts';
import type { RecordVersion } from '../../limiter/record-versions.ts';
import { auditedPlan, planTarget } from '../../plans/audited-plan.ts';
import { checkPlan } from '../../plans/check-plan.ts';
import type { Plan } from '../../plans/plan.ts';
import type { PlanChanges, PlanRepository } from '../../plans/plan-repository.ts';
import { requireState } from '../../platform/precondition.ts';
import { auditedChange } from './audited-change.ts';
import { snapshotVersion } from './key-snapshots.ts';
import { planOfRow } from './plans-table.ts';
import type { RecordsDatabase } from './records-database.ts';

const BATCH = 1000;
/** A plan that a key refers to: `restrict_violation` since Postgres 18, `foreign_key_violation` before. */
const REFERRED_TO = new Set(['23001', '23503']);

/** Plans in Postgres. `defaultPlanId` names the plan of keys that have none of their own; null = unlimited. */
export class PostgresPlanRepository implements PlanRepository {
  readonly #db: RecordsDatabase;
  readonly #defaultPlanId: string | null;

  constructor(db: RecordsDatabase, { defaultPlanId }: { readonly defaultPlanId: string | null }) {
    this.#db = db;
    this.#defaultPlanId = defaultPlanId;
  }

  insert(plan: Plan, change: ChangeContext): Promise<boolean> {
    return auditedChange(this.#db, change, async (trx, note) => {
      const inserted = await trx
        .insertInto('plans')
        .values({
          id: plan.id,
          description: plan.description,
          limit: plan.limit,
          period: plan.period,
          created_at: new Date(plan.createdAtMs),
          updated_at: new Date(plan.updatedAtMs),
          version: plan.version,
          additional_limits: JSON.stringify(plan.additionalLimits),
          costs: JSON.stringify(plan.costs),
        })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .returning('id')
        .executeTakeFirst();
      if (inserted === undefined) return false;
      const changes = changedFields(null, auditedPlan(plan));
      note({ action: 'plan.create', target: planTarget(plan), changes });
      return true;
    });
  }

  async find(planId: string): Promise<Plan | undefined> {
    const row = await this.#db.selectFrom('plans').selectAll().where('id', '=', planId).executeTakeFirst();
    return row && planOfRow(row);
  }

  async list(): Promise<readonly Plan[]> {
    const rows = await this.#db.selectFrom('plans').selectAll().orderBy('id').execute();
    return rows.map(planOfRow);
  }

  update(planId: string, changes: PlanChanges, change: ChangeContext): Promise<Plan | undefined> {
    return auditedChange(this.#db, change, async (trx, note) => {
      const before = await lockedPlan(trx, planId);
      if (before === undefined) return undefined;
      requireState(change.expects, before);
      const wanted = { ...before, ...changes };
      checkPlan(wanted);
      if (isDeepStrictEqual(wanted, before)) return before;
      const plan = await write(trx, wanted, change.atMs);
      const changed = changedFields(auditedPlan(before), auditedPlan(plan));
      note({ action: 'plan.update', target: planTarget(plan), changes: changed });
      return plan;
    });
  }

  async delete(
    planId: string,
    change: ChangeContext,
  ): Promise<'deleted' | 'not_found' | { readonly boundKeys: number }> {
    try {
      return await auditedChange(this.#db, change, async (trx, note) => {
        const plan = await lockedPlan(trx, planId);
        if (plan === undefined) return 'not_found';
        requireState(change.expects, plan);
        await trx.deleteFrom('plans').where('id', '=', planId).execute();
        const changes = changedFields(auditedPlan(plan), null);
        note({ action: 'plan.delete', target: planTarget(plan), changes });
        return 'deleted';
      });
    } catch (error) {
      if (error instanceof Error && 'code' in error && REFERRED_TO.has(String(error.code))) {
        return { boundKeys: await this.#countBound(planId) };
      }
      throw error;
    }
  }

  async #countBound(planId: string): Promise<number> {
    const { bound } = await this.#db
      .selectFrom('consumer_keys')
      .select(({ fn }) => fn.countAll<number>().as('bound'))
      .where('plan_id', '=', planId)
      .executeTakeFirstOrThrow();
    return bound;
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

/** Until the transaction ends, nobody else changes or deletes it, nor binds a key to it. New keys that name it are not held up. */
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
  const row = await trx
    .updateTable('plans')
    .set((set) => ({
      description: plan.description,
      limit: plan.limit,
      period: plan.period,
      additional_limits: JSON.stringify(plan.additionalLimits),
      costs: JSON.stringify(plan.costs),
      updated_at: new Date(updatedAtMs),
      version: set('version', '+', 1),
    }))
    .where('id', '=', plan.id)
    .returningAll()
    .executeTakeFirstOrThrow();
  return planOfRow(row);
}
