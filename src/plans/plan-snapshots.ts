import type { LimitOverrides } from '../limiter/limit-overrides.ts';
import type { RequestLimits } from '../limiter/request-limits.ts';
import { BoundedCache } from '../platform/bounded-cache.ts';
import { limitsOfPlan } from './limits-of-plan.ts';
import type { Plan } from './plan.ts';

/** What the limits of a key are made of. */
type LimitedPlan = Pick<Plan, 'id' | 'limit' | 'period' | 'additionalLimits' | 'costs'>;

/** Plans whose limits are shared between keys. */
const CAPACITY = 1000;

/**
 * Makes the limits of keys, once for all keys under the same plan: a hundred thousand cached keys must not have a hundred thousand
 * copies of them. A key with overrides does not share its limits.
 */
export class PlanSnapshots {
  readonly #shared = new BoundedCache<RequestLimits>(CAPACITY);

  /** Throws for a period that can't be read. */
  limitsOf(plan: LimitedPlan, overrides: LimitOverrides): RequestLimits {
    if (Object.keys(overrides).length > 0) return limitsOfPlan(plan, overrides);
    // Not by its version: a plan may be deleted and created again with the same version.
    const terms = JSON.stringify([plan.id, plan.limit, plan.period, plan.additionalLimits, plan.costs]);
    const known = this.#shared.get(terms);
    if (known !== undefined) return known;
    const limits = limitsOfPlan(plan, overrides);
    this.#shared.set(terms, limits);
    return limits;
  }
}
