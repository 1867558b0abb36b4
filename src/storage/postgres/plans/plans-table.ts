import type { ColumnType, Generated, Insertable, Selectable } from 'kysely';
import type { AdditionalLimit, Plan, PlanCost } from '../../../plans/plan.ts';

/** The table `plans`. */
export interface PlansTable {
  readonly id: string;
  readonly description: string;
  readonly limit: number;
  readonly period: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly version: Generated<number>;
  /** `jsonb`: read as a parsed value, written as JSON text. */
  readonly additional_limits: ColumnType<readonly AdditionalLimit[], string | undefined, string>;
  readonly costs: ColumnType<readonly PlanCost[], string | undefined, string>;
  readonly managed_by: string | null;
  readonly managed_digest: Uint8Array | null;
}

/** The row of a plan. */
export function rowOfPlan(plan: Plan): Insertable<PlansTable> {
  return {
    id: plan.id,
    description: plan.description,
    limit: plan.limit,
    period: plan.period,
    created_at: new Date(plan.createdAtMs),
    updated_at: new Date(plan.updatedAtMs),
    version: plan.version,
    additional_limits: JSON.stringify(plan.additionalLimits),
    costs: JSON.stringify(plan.costs),
    managed_by: plan.managedBy,
  };
}

/** The plan that a row holds. */
export function planOfRow(row: Selectable<PlansTable>): Plan {
  return {
    id: row.id,
    description: row.description,
    limit: row.limit,
    period: row.period,
    additionalLimits: row.additional_limits,
    costs: row.costs,
    createdAtMs: row.created_at.getTime(),
    updatedAtMs: row.updated_at.getTime(),
    version: row.version,
    managedBy: row.managed_by,
  };
}
