import type { GrantedPlan } from '../keys/consumer-key.ts';
import { periodSeconds } from '../limiter/period.ts';
import type { Decision } from '../limiter/rate-limiter.ts';

/** Names that belong to the gateway: a backend's own fields of these names never reach the client. Lower case. */
export const RATE_LIMIT_FIELDS = [
  'ratelimit-policy',
  'ratelimit',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
] as const;

/**
 * Adds the rate-limit fields to a flat list of names and values: `RateLimit-Policy` and `RateLimit` of
 * draft-ietf-httpapi-ratelimit-headers-11, and the older `X-RateLimit-*`. Adds nothing when no shared count stands behind the decision
 * (degraded), or no limit (unlimited). Resets are rounded up, so that whoever comes back then finds the next window open.
 */
export function pushRateLimitFields(fields: string[], plan: GrantedPlan, decision: Decision): void {
  if ((decision.kind !== 'admitted' && decision.kind !== 'denied') || decision.degraded) return;
  const remaining = decision.kind === 'admitted' ? decision.remaining : 0;
  const { policy, name, limit } = planTexts(plan);
  fields.push(
    'RateLimit-Policy',
    policy,
    'RateLimit',
    `${name};r=${remaining};t=${secondsToReset(decision)}`,
    'X-RateLimit-Limit',
    limit,
    'X-RateLimit-Remaining',
    String(remaining),
    'X-RateLimit-Reset',
    String(Math.ceil(decision.resetAtMs / 1000)),
  );
}

/** Whole seconds until the window ends, rounded up, never negative. */
export function secondsToReset({
  resetAtMs,
  nowMs,
}: {
  readonly resetAtMs: number;
  readonly nowMs: number;
}): number {
  return Math.max(0, Math.ceil((resetAtMs - nowMs) / 1000));
}

/** The parts that are the same for every request of a plan. */
interface PlanTexts {
  readonly policy: string;
  readonly name: string;
  readonly limit: string;
}

/** A plan's texts live as long as the plan's copy does: this only saves making them for every request. */
const textsOfPlans = new WeakMap<GrantedPlan, PlanTexts>();

function planTexts(plan: GrantedPlan): PlanTexts {
  const known = textsOfPlans.get(plan);
  if (known !== undefined) return known;
  // A plan's id has only characters that need no escape in a structured field's string.
  const name = `"${plan.id}"`;
  const texts: PlanTexts = {
    policy: `${name};q=${plan.limit};w=${periodSeconds(plan.period)}`,
    name,
    limit: String(plan.limit),
  };
  textsOfPlans.set(plan, texts);
  return texts;
}
