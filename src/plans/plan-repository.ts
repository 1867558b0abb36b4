import type { ChangeContext } from '../audit/change-context.ts';
import type { BoundKeys } from '../errors.ts';
import type { RecordVersion } from '../limiter/record-versions.ts';
import type { Plan, PlanTerms } from './plan.ts';

/** The fields of a plan that an edit may change; a missing one stays as it is. */
export type PlanChanges = Partial<PlanTerms>;

/** Which plans are listed. */
export interface PlanFilter {
  /** A part of the id or the description, in any case. */
  readonly text?: string;
}

/** A part of the list. */
export interface PlanSelection extends PlanFilter {
  /** Only plans after this one. */
  readonly afterId?: string;
  /** Missing: all. */
  readonly limit?: number;
}

/** Where plans are kept. Each change is in the audit log, in one transaction with its entry. Every method rejects with `StoreUnavailable` when the store does not respond. */
export interface PlanRepository {
  /** False when the id is taken: nothing was written. */
  insert(plan: Plan, change: ChangeContext): Promise<boolean>;
  find(planId: string): Promise<Plan | undefined>;
  /** The plans of a part of the list, by id. */
  list(selection: PlanSelection): Promise<readonly Plan[]>;
  count(filter: PlanFilter): Promise<number>;
  /** How many keys with all of the tags are bound to each of the plans; nothing for one without any key. One query. */
  countBound(
    planIds: readonly string[],
    onlyTags: readonly string[],
  ): Promise<ReadonlyMap<string, BoundKeys>>;
  /**
   * Writes the changes, sets `updatedAtMs` and raises the version, unless the plan is as the changes want it already. Undefined when there
   * is no such plan. Rejects with `VersionMismatch` for a plan that is in another state than expected, and with `InvalidBody` when the parts
   * of the changed plan contradict each other.
   */
  update(planId: string, changes: PlanChanges, change: ChangeContext): Promise<Plan | undefined>;
  /**
   * Gives the keys that are bound to it when there are any: nothing is deleted then. The caller guards the default plan. Rejects with
   * `VersionMismatch` for a plan that is in another state than expected.
   */
  delete(planId: string, change: ChangeContext): Promise<'deleted' | 'not_found' | BoundKeys>;
  /**
   * Binds all keys of a plan to another one and deletes it, in one transaction. Gives the keys with the versions that their snapshots have
   * now. Nothing is done when one of them does not exist for who makes the change: gives what `delete` does then. The caller guards the
   * default plan. Rejects with `VersionMismatch` as `delete` does.
   */
  replace(
    planId: string,
    byPlanId: string,
    change: ChangeContext,
  ): Promise<readonly RecordVersion[] | 'not_found' | 'other_not_found' | BoundKeys>;
  /**
   * The keys that this plan applies to (bound to it, or without a plan while it is the default), with the version that their
   * snapshots have now, in batches of at most 1000.
   */
  keysUnder(planId: string): AsyncIterable<readonly RecordVersion[]>;
}
