import { type FieldFault, InvalidBody } from '../errors.ts';
import { MAIN_LIMIT_ID } from '../limiter/request-limits.ts';
import { ANY_SEGMENT, type PathPattern, parsePathPattern } from '../paths/path-pattern.ts';
import type { AdditionalLimit, PlanCost, PlanTerms } from './plan.ts';

/**
 * Throws `InvalidBody` for a plan whose parts contradict each other: a `limitId` that is used twice or is `main`, or a cost above an
 * enforced limit that applies to such a request, which could never be allowed. The parts are already valid by themselves.
 */
export function checkPlan(plan: PlanTerms): void {
  const faults = [...limitIdFaults(plan.additionalLimits), ...costFaults(plan)];
  if (faults.length > 0) throw new InvalidBody(faults);
}

function limitIdFaults(limits: readonly AdditionalLimit[]): readonly FieldFault[] {
  const seen = new Set<string>([MAIN_LIMIT_ID]);
  return limits.flatMap(({ limitId }, index) => {
    const isTaken = seen.has(limitId);
    seen.add(limitId);
    if (!isTaken) return [];
    const message =
      limitId === MAIN_LIMIT_ID
        ? 'must not be "main": that is the limit that the plan\'s "limit" and "period" make'
        : 'must not be the limitId of another limit of this plan';
    return [{ field: `additionalLimits[${index}].limitId`, message }];
  });
}

function costFaults({ limit, additionalLimits, costs }: PlanTerms): readonly FieldFault[] {
  return costs.flatMap((cost, index) => {
    const isReported = cost.cost === 'response';
    const units = cost.cost === 'response' ? (cost.reserve ?? 1) : cost.cost;
    const tooSmall = lowestLimitMet(cost, limit, additionalLimits);
    if (units <= tooSmall.limit) return [];
    const field = `costs[${index}].${isReported ? 'reserve' : 'cost'}`;
    const message = `must not be above ${tooSmall.limit}, the limit "${tooSmall.limitId}" that such a request meets: it would never be allowed`;
    return [{ field, message }];
  });
}

/** The lowest of the enforced limits that apply to some request of the pattern. */
function lowestLimitMet(
  cost: PlanCost,
  mainLimit: number,
  limits: readonly AdditionalLimit[],
): { readonly limitId: string; readonly limit: number } {
  let lowest = { limitId: MAIN_LIMIT_ID, limit: mainLimit };
  for (const { limitId, limit, mode = 'enforce', match } of limits) {
    const isMet =
      mode === 'enforce' && (match === undefined || match.some((pattern) => canBothMatch(cost, pattern)));
    if (isMet && limit < lowest.limit) lowest = { limitId, limit };
  }
  return lowest;
}

/** Whether a request can match both patterns. */
function canBothMatch(one: PathPattern, other: PathPattern): boolean {
  const shareMethod =
    one.methods === undefined ||
    other.methods === undefined ||
    one.methods.some((method) => other.methods?.includes(method)) ||
    (one.methods.includes('HEAD') && other.methods.includes('GET')) ||
    (one.methods.includes('GET') && other.methods.includes('HEAD'));
  return shareMethod && canPathsMeet(one.path, other.path);
}

function canPathsMeet(one: string, other: string): boolean {
  // The patterns of a plan are in one case already.
  const a = parsePathPattern(one, 'sensitive');
  const b = parsePathPattern(other, 'sensitive');
  const common = Math.min(a.segments.length, b.segments.length);
  for (let i = 0; i < common; i += 1) {
    if (!canSegmentsMeet(a.segments[i], b.segments[i])) return false;
  }
  // The other pattern must match the remaining segments of the longer one with `**`.
  if (a.segments.length > common && !b.hasRest) return false;
  return b.segments.length === common || a.hasRest;
}

type Segment = string | typeof ANY_SEGMENT | undefined;

function canSegmentsMeet(a: Segment, b: Segment): boolean {
  // `*` does not match an empty segment: the one of `/`.
  if (a === ANY_SEGMENT) return b !== '';
  if (b === ANY_SEGMENT) return a !== '';
  return a === b;
}
