import type { ChangeContext } from '../audit/change-context.ts';
import type { BoundKeys } from '../errors.ts';
import type { RecordVersion } from '../limiter/record-versions.ts';
import type { Plan, PlanTerms } from './plan.ts';

/** The fields of a plan that an edit may change; missing fields stay unchanged. */
export type PlanChanges = Partial<PlanTerms>;

/** Filters the list of plans. */
export interface PlanFilter {
  /** A part of the id or the description, in any case. */
  readonly text?: string;
}

/** A part of the list. */
export interface PlanSelection extends PlanFilter {
  /** Only plans after this one. */
  readonly afterId?: string;
  /** Missing = no limit. */
  readonly limit?: number;
}

/**
 * Stores plans. Each change and its entry in the audit log are written in one transaction. Every method rejects with `StoreUnavailable` if
 * the store does not respond.
 */
export interface PlanRepository {
  /** False if the id is taken; then nothing was written. */
  insert(plan: Plan, change: ChangeContext): Promise<boolean>;
  find(planId: string): Promise<Plan | undefined>;
  /** The selected plans, by id. */
  list(selection: PlanSelection): Promise<readonly Plan[]>;
  count(filter: PlanFilter): Promise<number>;
  /** For each of the plans, how many keys with all of the tags are bound to it; a plan without keys is missing. One query. */
  countBound(
    planIds: readonly string[],
    onlyTags: readonly string[],
  ): Promise<ReadonlyMap<string, BoundKeys>>;
  /**
   * Writes the changes, sets `updatedAtMs` and raises the version, unless the plan already is as the changes want it. Undefined if there is
   * no such plan. Rejects with `VersionMismatch` if its state is not the expected one, and with `InvalidBody` if the parts of the changed
   * plan contradict each other.
   */
  update(planId: string, changes: PlanChanges, change: ChangeContext): Promise<Plan | undefined>;
  /**
   * If keys are bound to the plan, deletes nothing and resolves with their numbers. The caller protects the default plan. Rejects with
   * `VersionMismatch` if the plan's state is not the expected one.
   */
  delete(planId: string, change: ChangeContext): Promise<'deleted' | 'not_found' | BoundKeys>;
  /**
   * Binds all keys of a plan to another one and deletes the plan, in one transaction. Resolves with the new versions of the keys'
   * snapshots. If the author of the change can't see one of the keys, it changes nothing and resolves like `delete`. The caller protects
   * the default plan. Rejects with `VersionMismatch` like `delete`.
   */
  replace(
    planId: string,
    byPlanId: string,
    change: ChangeContext,
  ): Promise<readonly RecordVersion[] | 'not_found' | 'other_not_found' | BoundKeys>;
  /**
   * The keys that this plan applies to (bound to it, or without a plan if it is the default), with the present versions of their snapshots,
   * in batches of at most 1000.
   */
  keysUnder(planId: string): AsyncIterable<readonly RecordVersion[]>;
}
