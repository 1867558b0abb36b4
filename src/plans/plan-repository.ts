import type { RecordVersion } from '../limiter/record-versions.ts';
import type { Plan } from './plan.ts';

/** The fields of a plan that an edit may change; a missing one stays as it is. */
export interface PlanChanges {
  readonly description?: string;
  readonly limit?: number;
  readonly period?: string;
}

/** Where plans are kept. Every method rejects with `StoreUnavailable` when the store does not answer. */
export interface PlanRepository {
  /** False when the id is taken: nothing was written. */
  insert(plan: Plan): Promise<boolean>;
  find(planId: string): Promise<Plan | undefined>;
  /** All plans, by id. */
  list(): Promise<readonly Plan[]>;
  /** Writes the changes, sets `updatedAtMs` and raises the version. Undefined when there is no such plan. */
  update(planId: string, changes: PlanChanges, updatedAtMs: number): Promise<Plan | undefined>;
  /** `in_use` when a key is bound to it. The caller guards the default plan. */
  delete(planId: string): Promise<'deleted' | 'in_use' | 'not_found'>;
  /**
   * The keys that this plan applies to (bound to it, or without a plan while it is the default), with the version that their
   * grants have now, in batches of at most 1000.
   */
  keysUnder(planId: string): AsyncIterable<readonly RecordVersion[]>;
}
