import type { Generated, Selectable } from 'kysely';
import type { Plan } from '../../plans/plan.ts';

/** The table `plans`. */
export interface PlansTable {
  readonly id: string;
  readonly description: string;
  readonly limit: number;
  readonly period: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly version: Generated<number>;
}

/** The plan that a row holds. */
export function planOfRow(row: Selectable<PlansTable>): Plan {
  return {
    id: row.id,
    description: row.description,
    limit: row.limit,
    period: row.period,
    createdAtMs: row.created_at.getTime(),
    updatedAtMs: row.updated_at.getTime(),
    version: row.version,
  };
}
