import type { RecordVersion } from '../../limiter/record-versions.ts';
import type { Plan } from '../../plans/plan.ts';
import type { PlanChanges, PlanRepository } from '../../plans/plan-repository.ts';
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

  async insert(plan: Plan): Promise<boolean> {
    const inserted = await this.#db
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
    return inserted !== undefined;
  }

  async find(planId: string): Promise<Plan | undefined> {
    const row = await this.#db.selectFrom('plans').selectAll().where('id', '=', planId).executeTakeFirst();
    return row && planOfRow(row);
  }

  async list(): Promise<readonly Plan[]> {
    const rows = await this.#db.selectFrom('plans').selectAll().orderBy('id').execute();
    return rows.map(planOfRow);
  }

  async update(planId: string, changes: PlanChanges, updatedAtMs: number): Promise<Plan | undefined> {
    const row = await this.#db
      .updateTable('plans')
      .set((set) => ({
        ...(changes.description !== undefined && { description: changes.description }),
        ...(changes.limit !== undefined && { limit: changes.limit }),
        ...(changes.period !== undefined && { period: changes.period }),
        ...(changes.additionalLimits !== undefined && {
          additional_limits: JSON.stringify(changes.additionalLimits),
        }),
        ...(changes.costs !== undefined && { costs: JSON.stringify(changes.costs) }),
        updated_at: new Date(updatedAtMs),
        version: set('version', '+', 1),
      }))
      .where('id', '=', planId)
      .returningAll()
      .executeTakeFirst();
    return row && planOfRow(row);
  }

  async delete(planId: string): Promise<'deleted' | 'not_found' | { readonly boundKeys: number }> {
    try {
      const deleted = await this.#db
        .deleteFrom('plans')
        .where('id', '=', planId)
        .returning('id')
        .executeTakeFirst();
      return deleted === undefined ? 'not_found' : 'deleted';
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
