import type { ChangeContext } from '../audit/change-context.ts';
import { type BoundKeys, PlanExists, PlanInUse, PlanIsDefault, PlanNotFound } from '../errors.ts';
import type { RecordVersions } from '../limiter/record-versions.ts';
import { requireState } from '../platform/precondition.ts';
import { checkPlan } from './check-plan.ts';
import { isPlanId, type Plan, type PlanTerms, SHIPPED_PLAN_ID } from './plan.ts';
import type { PlanChanges, PlanFilter, PlanRepository, PlanSelection } from './plan-repository.ts';

const PUBLISHED_AT_ONCE = 1000;

/** What the service of plans works with. */
export interface PlanServiceOptions {
  readonly repository: PlanRepository;
  readonly versions: RecordVersions;
  /** The plan of keys without one; null = unlimited. */
  readonly defaultPlanId: string | null;
}

/** A plan as its author sends it. */
export interface NewPlan extends PlanTerms {
  readonly id: string;
}

/**
 * Makes, shows, changes and deletes plans. A change holds on every replica, for every key under the plan, with the next
 * request once its promise is resolved; when it rejects with `StoreUnavailable` it may or may not have been made. Fields come in
 * validated each by itself; that they fit together is checked here.
 */
export class PlanService {
  readonly #options: PlanServiceOptions;

  constructor(options: PlanServiceOptions) {
    this.#options = options;
  }

  /** Throws `PlanExists` when the id is taken, and `InvalidBody` when its parts contradict each other. */
  async create(made: NewPlan, change: ChangeContext): Promise<Plan> {
    checkPlan(made);
    const plan = await this.#insert(made, change);
    if (plan === undefined) throw new PlanExists();
    return plan;
  }

  /**
   * Makes the plan, or replaces what there is under its id. Throws `InvalidBody` when its parts contradict each other, `VersionMismatch`
   * when what there is, or that there is nothing, is not as expected.
   */
  async put(
    written: NewPlan,
    change: ChangeContext,
  ): Promise<{ readonly plan: Plan; readonly isNew: boolean }> {
    checkPlan(written);
    const { id, ...terms } = written;
    const { expects } = change;
    const mayMake = expects?.(undefined) ?? true;
    for (;;) {
      const made = mayMake ? await this.#insert(written, change) : undefined;
      if (made !== undefined) return { plan: made, isNew: true };
      const replaced = await this.#write(id, terms, change);
      if (replaced !== undefined) return { plan: replaced, isNew: false };
      // It is not there, or was deleted since.
      requireState(expects, undefined);
    }
  }

  /** Undefined when the id is taken. */
  async #insert(made: NewPlan, change: ChangeContext): Promise<Plan | undefined> {
    const { id } = made;
    const plan = {
      ...made,
      createdAtMs: change.atMs,
      updatedAtMs: change.atMs,
      version: 1,
      managedBy: null,
    };
    if (!(await this.#options.repository.insert(plan, change))) return undefined;
    if (id === this.#options.defaultPlanId) {
      // Keys without a plan were rejected until now; some have a version from then.
      for await (const keys of this.#options.repository.keysUnder(id)) {
        await this.#options.versions.publishVersion(keys);
      }
    }
    return plan;
  }

  /** The plans of a part of the list, by id. */
  list(selection: PlanSelection = {}): Promise<readonly Plan[]> {
    return this.#options.repository.list(selection);
  }

  count(filter: PlanFilter): Promise<number> {
    return this.#options.repository.count(filter);
  }

  /** How many keys with all of the tags are bound to each of the plans; nothing for one without any key. */
  countBound(
    planIds: readonly string[],
    onlyTags: readonly string[],
  ): Promise<ReadonlyMap<string, BoundKeys>> {
    return this.#options.repository.countBound(planIds, onlyTags);
  }

  /** Throws `PlanNotFound`. */
  async get(planId: string): Promise<Plan> {
    // What has another form is no plan, and may hold what a database rejects.
    const plan = isPlanId(planId) ? await this.#options.repository.find(planId) : undefined;
    if (plan === undefined) {
      throw new PlanNotFound();
    }
    return plan;
  }

  /**
   * Throws `PlanNotFound`, `InvalidBody` when the parts of the changed plan contradict each other, and `VersionMismatch` for a plan that is
   * in another state than expected.
   */
  async update(planId: string, changes: PlanChanges, change: ChangeContext): Promise<Plan> {
    // Checked with the write as well, with the plan locked; here, so that a bad change does nothing else.
    checkPlan({ ...(await this.get(planId)), ...changes });
    const plan = await this.#write(planId, changes, change);
    if (plan === undefined) throw new PlanNotFound();
    return plan;
  }

  /** Undefined when there is no such plan. */
  async #write(planId: string, changes: PlanChanges, change: ChangeContext): Promise<Plan | undefined> {
    const { repository, versions } = this.#options;
    // Checked here as well, so that a change that is not made does not make the copies of a hundred thousand keys stale.
    const present = await repository.find(planId);
    if (present === undefined) return undefined;
    requireState(change.expects, present);
    for await (const keys of repository.keysUnder(planId)) {
      await versions.markStale(keys.map(({ keyId }) => keyId));
    }
    const plan = await repository.update(planId, changes, change);
    if (plan === undefined) return undefined;
    // Read again after the write: these are the new versions, and keys that came under the plan meanwhile are among them.
    for await (const keys of repository.keysUnder(planId)) {
      await versions.publishVersion(keys);
    }
    return plan;
  }

  /**
   * Throws `PlanNotFound`, `PlanInUse` when a key is bound to it, `PlanIsDefault`, whichever plan the settings name, or `VersionMismatch` for
   * a plan that is in another state than expected.
   */
  async remove(planId: string, change: ChangeContext): Promise<void> {
    const { repository, defaultPlanId } = this.#options;
    await this.get(planId);
    // The shipped one stays while another default is set: a restart without the setting needs it.
    if (planId === defaultPlanId || planId === SHIPPED_PLAN_ID) throw new PlanIsDefault();
    // No version changes: a plan that can be deleted is in no key's snapshot.
    const outcome = await repository.delete(planId, change);
    if (outcome === 'not_found') throw new PlanNotFound();
    if (outcome !== 'deleted') throw new PlanInUse(planId, outcome);
  }

  /**
   * Binds all keys of a plan to another one and deletes it. Resolves with how many keys that were. Throws as `remove` does, but `PlanInUse`
   * only for keys that do not exist for who makes the change, and `PlanNotFound` for the other plan, too.
   */
  async replace(planId: string, byPlanId: string, change: ChangeContext): Promise<number> {
    const { repository, versions, defaultPlanId } = this.#options;
    const present = await this.get(planId);
    if (planId === defaultPlanId || planId === SHIPPED_PLAN_ID) throw new PlanIsDefault();
    if (!isPlanId(byPlanId) || (await repository.find(byPlanId)) === undefined)
      throw new PlanNotFound('rebindTo');
    requireState(change.expects, present);
    for await (const keys of repository.keysUnder(planId)) {
      await versions.markStale(keys.map(({ keyId }) => keyId));
    }
    const moved = await repository.replace(planId, byPlanId, change);
    if (moved === 'not_found') throw new PlanNotFound();
    if (moved === 'other_not_found') throw new PlanNotFound('rebindTo');
    if ('boundKeys' in moved) throw new PlanInUse(planId, moved);
    for (let start = 0; start < moved.length; start += PUBLISHED_AT_ONCE) {
      await versions.publishVersion(moved.slice(start, start + PUBLISHED_AT_ONCE));
    }
    return moved.length;
  }
}
