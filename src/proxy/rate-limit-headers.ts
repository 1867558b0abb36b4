import { fieldLine } from '../http/line-response.ts';
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
 * The lines of the rate-limit fields: `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, and the older
 * `X-RateLimit-*`. None when no shared count stands behind the decision (degraded), or no limit (unlimited). Resets are rounded up, so
 * that whoever comes back then finds the next window open.
 */
export function rateLimitLines(plan: GrantedPlan, decision: Decision): string {
  if ((decision.kind !== 'admitted' && decision.kind !== 'denied') || decision.degraded) return '';
  const remaining = decision.kind === 'admitted' ? decision.remaining : 0;
  const reset = Math.ceil(decision.resetAtMs / 1000);
  return `${linesOf(plan)}${remaining};t=${secondsToReset(decision)}\r\nX-RateLimit-Remaining: ${remaining}\r\nX-RateLimit-Reset: ${reset}\r\n`;
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

/** What is the same for every request of a plan, up to what remains in `RateLimit`. It lives as long as the plan's copy does. */
const linesOfPlans = new WeakMap<GrantedPlan, string>();

function linesOf(plan: GrantedPlan): string {
  const known = linesOfPlans.get(plan);
  if (known !== undefined) return known;
  // A plan's id has only characters that need no escape in a structured field's string.
  const name = `"${plan.id}"`;
  const policy = fieldLine('RateLimit-Policy', `${name};q=${plan.limit};w=${periodSeconds(plan.period)}`);
  const lines = `${policy}${fieldLine('X-RateLimit-Limit', String(plan.limit))}RateLimit: ${name};r=`;
  linesOfPlans.set(plan, lines);
  return lines;
}
