import { PlanExists, PlanInUse, PlanNotFound } from '../errors.ts';
import type { RecordVersions } from '../limiter/record-versions.ts';
import type { Clock } from '../platform/clock.ts';
import { isPlanId, type Plan, SHIPPED_PLAN_ID } from './plan.ts';
import type { PlanChanges, PlanRepository } from './plan-repository.ts';

/** What the service of plans works with. */
export interface PlanServiceOptions {
  readonly repository: PlanRepository;
  readonly versions: RecordVersions;
  readonly clock: Clock;
  /** The plan of keys that have none of their own; null = unlimited. */
  readonly defaultPlanId: string | null;
}

/** A plan as its author sends it. */
export type NewPlan = Pick<Plan, 'id' | 'description' | 'limit' | 'period'>;

/**
 * Makes, shows, changes and deletes plans. A change holds on every replica, for every key under the plan, with the next
 * request once its promise is resolved; when it rejects with `StoreUnavailable` it may or may not have been made. Fields come in
 * validated.
 */
export class PlanService {
  readonly #options: PlanServiceOptions;

  constructor(options: PlanServiceOptions) {
    this.#options = options;
  }

  /** Throws `PlanExists` when the id is taken. */
  async create({ id, description, limit, period }: NewPlan): Promise<Plan> {
    const nowMs = this.#options.clock.nowMs();
    const plan = { id, description, limit, period, createdAtMs: nowMs, updatedAtMs: nowMs, version: 1 };
    if (!(await this.#options.repository.insert(plan))) {
      throw new PlanExists();
    }
    if (id === this.#options.defaultPlanId) {
      // Keys without a plan were refused until now; some have a version from then.
      for await (const keys of this.#options.repository.keysUnder(id)) {
        await this.#options.versions.settle(keys);
      }
    }
    return plan;
  }

  /** All plans, by id. */
  list(): Promise<readonly Plan[]> {
    return this.#options.repository.list();
  }

  /** Throws `PlanNotFound`. */
  async get(planId: string): Promise<Plan> {
    // What has another form is no plan, and may hold what a database refuses.
    const plan = isPlanId(planId) ? await this.#options.repository.find(planId) : undefined;
    if (plan === undefined) {
      throw new PlanNotFound();
    }
    return plan;
  }

  /** Throws `PlanNotFound`. */
  async update(planId: string, changes: PlanChanges): Promise<Plan> {
    const { repository, versions, clock } = this.#options;
    await this.get(planId);
    for await (const keys of repository.keysUnder(planId)) {
      await versions.announce(keys.map(({ keyId }) => keyId));
    }
    const plan = await repository.update(planId, changes, clock.nowMs());
    if (plan === undefined) {
      throw new PlanNotFound();
    }
    // Read again after the write: these are the new versions, and keys that came under the plan meanwhile are among them.
    for await (const keys of repository.keysUnder(planId)) {
      await versions.settle(keys);
    }
    return plan;
  }

  /** Throws `PlanNotFound`, or `PlanInUse` when a key is bound to it or it is the default plan, whichever the settings name. */
  async remove(planId: string): Promise<void> {
    const { repository, defaultPlanId } = this.#options;
    await this.get(planId);
    // The shipped one stays while another default is set: a restart without the setting needs it.
    const isDefault = planId === defaultPlanId || planId === SHIPPED_PLAN_ID;
    // No version changes: a plan that can be deleted is in no key's grant.
    const outcome = isDefault ? 'in_use' : await repository.delete(planId);
    if (outcome === 'in_use') {
      throw new PlanInUse();
    }
    if (outcome === 'not_found') {
      throw new PlanNotFound();
    }
  }
}
