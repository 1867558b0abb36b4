// The room `plans`: rate limit plans with their rules, and the port of their records.
// In: terms that an administrator wrote, with who changes them and why.
// Out: stored plans, the limits that they mean, and a new version for every key under a changed plan. Which plan applies to
// a key without one, the query of its snapshot decides: `storage/postgres/keys/key-snapshots.ts`.

import type { ChangeContext } from '../audit/change-context.ts';
import { type BoundKeys, PlanExists, PlanInUse, PlanIsDefault, PlanNotFound } from '../errors.ts';
import type { RecordVersions } from '../limiter/record-versions.ts';
import type { PathCase } from '../paths/path-readings.ts';
import { requireState } from '../platform/precondition.ts';
import { canonicalTerms } from './canonical-terms.ts';
import { checkPlan } from './check-plan.ts';
import type { Plan, PlanTerms } from './plan.ts';
import { isPlanId, SHIPPED_PLAN_ID } from './plan-id.ts';
import type { PlanChanges, PlanFilter, PlanRepository, PlanSelection } from './plan-repository.ts';

const PUBLISHED_AT_ONCE = 1000;

/** What `PlanService` is built from. */
export interface PlanServiceOptions {
  readonly repository: PlanRepository;
  /** Reads what is committed, also for changes in a unit of work. */
  readonly committed: Pick<PlanRepository, 'keysUnder'>;
  readonly versions: RecordVersions;
  /** The plan of keys without one; null = unlimited. */
  readonly defaultPlanId: string | null;
  /** In which patterns are stored. */
  readonly pathCase: PathCase;
}

/** A plan as its author sends it. */
export interface NewPlan extends PlanTerms {
  readonly id: string;
}

/**
 * Creates, shows, changes and deletes plans. Once the promise resolves, a change applies to the next request of every key under the plan,
 * on every replica, or within seconds if the versions defer it. If it rejects with `StoreUnavailable`, the change may or may not have been
 * made. Fields are already valid by themselves; this service brings patterns into canonical form and checks that the fields fit together.
 * What has patterns throws `PatternNotCanonical` for those without such a form.
 */
export class PlanService {
  readonly #options: PlanServiceOptions;

  constructor(options: PlanServiceOptions) {
    this.#options = options;
  }

  /** Throws `PlanExists` if the id is taken, and `InvalidBody` if the parts of the plan contradict each other. */
  async create(written: NewPlan, change: ChangeContext): Promise<Plan> {
    const made = canonicalTerms(written, this.#options.pathCase);
    checkPlan(made);
    const plan = await this.#insert(made, change);
    if (plan === undefined) throw new PlanExists();
    return plan;
  }

  /**
   * Creates the plan, or replaces the present one. Throws `InvalidBody` if the parts of the plan contradict each other, and
   * `VersionMismatch` if the present plan, or its absence, is not as expected.
   */
  async put(sent: NewPlan, change: ChangeContext): Promise<{ readonly plan: Plan; readonly isNew: boolean }> {
    const written = canonicalTerms(sent, this.#options.pathCase);
    checkPlan(written);
    const { id, ...terms } = written;
    const { expects } = change;
    const mayMake = expects?.(undefined) ?? true;
    for (;;) {
      const made = mayMake ? await this.#insert(written, change) : undefined;
      if (made !== undefined) return { plan: made, isNew: true };
      const replaced = await this.#write(id, terms, change);
      if (replaced !== undefined) return { plan: replaced, isNew: false };
      // There is no such plan, or it was deleted since the insert.
      requireState(expects, undefined);
    }
  }

  /** Undefined if the id is taken. */
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
      // Until now, keys without a plan were rejected. Some of them have a published version from that time.
      await this.#publishVersionsUnder(id);
    }
    return plan;
  }

  /** The selected plans, by id. */
  list(selection: PlanSelection = {}): Promise<readonly Plan[]> {
    return this.#options.repository.list(selection);
  }

  count(filter: PlanFilter): Promise<number> {
    return this.#options.repository.count(filter);
  }

  /** For each of the plans, how many keys with all of the tags are bound to it; a plan without keys is missing. */
  countBound(
    planIds: readonly string[],
    onlyTags: readonly string[],
  ): Promise<ReadonlyMap<string, BoundKeys>> {
    return this.#options.repository.countBound(planIds, onlyTags);
  }

  /** Throws `PlanNotFound`. */
  async get(planId: string): Promise<Plan> {
    // No plan has an id of another form, and Postgres might reject its characters.
    const plan = isPlanId(planId) ? await this.#options.repository.find(planId) : undefined;
    if (plan === undefined) {
      throw new PlanNotFound();
    }
    return plan;
  }

  /**
   * Throws `PlanNotFound`, `InvalidBody` if the parts of the changed plan contradict each other, and `VersionMismatch` if the plan's state
   * is not the expected one.
   */
  async update(planId: string, written: PlanChanges, change: ChangeContext): Promise<Plan> {
    const changes = canonicalTerms(written, this.#options.pathCase);
    // The write checks this again, with the plan locked. Checked here so that an invalid change marks no keys stale.
    checkPlan({ ...(await this.get(planId)), ...changes });
    const plan = await this.#write(planId, changes, change);
    if (plan === undefined) throw new PlanNotFound();
    return plan;
  }

  /** Undefined if there is no such plan. */
  async #write(planId: string, changes: PlanChanges, change: ChangeContext): Promise<Plan | undefined> {
    const { repository } = this.#options;
    // The write checks this again. Checked here so that a rejected change does not make the cached copies of many keys stale.
    const present = await repository.find(planId);
    if (present === undefined) return undefined;
    requireState(change.expects, present);
    await this.#markKeysStale(planId);
    const plan = await repository.update(planId, changes, change);
    if (plan === undefined) return undefined;
    // Read after the write: this gives the new versions, and includes keys that came under the plan in the meantime.
    await this.#publishVersionsUnder(planId);
    return plan;
  }

  async #markKeysStale(planId: string): Promise<void> {
    const { repository, versions } = this.#options;
    for await (const keys of repository.keysUnder(planId)) {
      await versions.markStale(keys.map(({ keyId }) => keyId));
    }
  }

  async #publishVersionsUnder(planId: string): Promise<void> {
    const { committed, versions } = this.#options;
    await versions.publishUnder(planId, committed.keysUnder(planId));
  }

  /**
   * Throws `PlanNotFound`, `PlanInUse` if a key is bound to the plan, `PlanIsDefault` for the default plan and the shipped one, and
   * `VersionMismatch` if the plan's state is not the expected one.
   */
  async remove(planId: string, change: ChangeContext): Promise<void> {
    await this.get(planId);
    this.#requireDeletable(planId);
    // No version changes: no key's snapshot has a plan that can be deleted.
    const outcome = await this.#options.repository.delete(planId, change);
    if (outcome === 'not_found') throw new PlanNotFound();
    if (outcome !== 'deleted') throw new PlanInUse(planId, outcome);
  }

  /**
   * Binds all keys of a plan to another one and deletes the plan. Resolves with the number of keys. Throws like `remove`, but `PlanInUse`
   * only if the author of the change can't see one of the keys, and `PlanNotFound` also for the other plan.
   */
  async replace(planId: string, byPlanId: string, change: ChangeContext): Promise<number> {
    const { repository, versions } = this.#options;
    const present = await this.get(planId);
    this.#requireDeletable(planId);
    if (!isPlanId(byPlanId) || (await repository.find(byPlanId)) === undefined)
      throw new PlanNotFound('rebindTo');
    requireState(change.expects, present);
    await this.#markKeysStale(planId);
    const moved = await repository.replace(planId, byPlanId, change);
    if (moved === 'not_found') throw new PlanNotFound();
    if (moved === 'other_not_found') throw new PlanNotFound('rebindTo');
    if ('boundKeys' in moved) throw new PlanInUse(planId, moved);
    for (let start = 0; start < moved.length; start += PUBLISHED_AT_ONCE) {
      await versions.publishVersion(moved.slice(start, start + PUBLISHED_AT_ONCE));
    }
    return moved.length;
  }

  #requireDeletable(planId: string): void {
    // The shipped plan stays even if another one is the default: a restart without that setting needs it.
    if (planId === this.#options.defaultPlanId || planId === SHIPPED_PLAN_ID) throw new PlanIsDefault();
  }
}
