import type { LimitOverrides } from '../limiter/limit-overrides.ts';
import { parsePeriod } from '../limiter/period.ts';
import {
  type CostRule,
  type Limit,
  type LimitRule,
  MAIN_LIMIT_ID,
  RequestLimits,
} from '../limiter/request-limits.ts';
import type { PathCase } from '../paths/path-readings.ts';
import type { AdditionalLimit, PlanCost, PlanTerms } from './plan.ts';

/** The part of a plan that its limits are made from. */
type LimitedPlan = Pick<PlanTerms, 'limit' | 'period' | 'additionalLimits' | 'costs'>;

/** The limits of a key under a plan. Throws for an invalid period. An override of a limit that the plan does not have is ignored. */
export function limitsOfPlan(
  plan: LimitedPlan,
  overrides: LimitOverrides,
  pathCase: PathCase,
): RequestLimits {
  const main: AdditionalLimit = { limitId: MAIN_LIMIT_ID, limit: plan.limit, period: plan.period };
  const additional = plan.additionalLimits.map((limit) => ruleOf(limit, overrides));
  return new RequestLimits([ruleOf(main, overrides), ...additional], plan.costs.map(costRuleOf), pathCase);
}

function ruleOf(written: AdditionalLimit, overrides: LimitOverrides): LimitRule {
  return { limit: limitOf(written, overrides), match: written.match };
}

function limitOf(written: AdditionalLimit, overrides: LimitOverrides): Limit {
  const { limitId, limit, period: periodText, per = 'key', mode = 'enforce' } = written;
  const period = parsePeriod(periodText);
  if (period === undefined) {
    throw new Error(`The limit "${limitId}" has a period that can not be read: "${periodText}".`);
  }
  const override = Object.hasOwn(overrides, limitId) ? overrides[limitId] : undefined;
  return {
    id: limitId,
    limit: override?.limit ?? limit,
    baseLimit: limit,
    endsAtMs: override?.untilMs ?? null,
    period,
    periodText,
    per,
    mode,
    windowName: `${limitId}:${period.token}`,
  };
}

function costRuleOf({ methods, path, cost, reserve = 1 }: PlanCost): CostRule {
  return {
    pattern: methods === undefined ? { path } : { path, methods },
    cost: cost === 'response' ? { units: reserve, isReported: true } : { units: cost, isReported: false },
  };
}
