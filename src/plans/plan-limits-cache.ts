import type { LimitOverrides } from '../limiter/limit-overrides.ts';
import type { RequestLimits } from '../limiter/request-limits.ts';
import type { PathCase } from '../paths/path-readings.ts';
import { BoundedCache } from '../platform/bounded-cache.ts';
import { limitsOfPlan } from './limits-of-plan.ts';
import type { Plan } from './plan.ts';

/** The part of a plan that its limits are made from. */
type LimitedPlan = Pick<Plan, 'id' | 'limit' | 'period' | 'additionalLimits' | 'costs'>;

/** The most plans whose limits are cached. */
const CAPACITY = 1000;

/**
 * Makes the limits of keys, once for all keys under the same plan: a hundred thousand cached keys must not hold a hundred thousand copies.
 * A key with overrides has its own limits.
 */
export class PlanLimitsCache {
  readonly #shared = new BoundedCache<RequestLimits>(CAPACITY);
  readonly #pathCase: PathCase;

  constructor(pathCase: PathCase) {
    this.#pathCase = pathCase;
  }

  /** Throws for an invalid period. */
  limitsOf(plan: LimitedPlan, overrides: LimitOverrides): RequestLimits {
    if (Object.keys(overrides).length > 0) return limitsOfPlan(plan, overrides, this.#pathCase);
    // The version would not be enough: a plan may be deleted and created again with the same version.
    const terms = JSON.stringify([plan.id, plan.limit, plan.period, plan.additionalLimits, plan.costs]);
    const known = this.#shared.get(terms);
    if (known !== undefined) return known;
    const limits = limitsOfPlan(plan, overrides, this.#pathCase);
    this.#shared.set(terms, limits);
    return limits;
  }
}
