import type { ErrorAnswer } from '../http/error-answers.ts';
import { isoSecondsUp } from '../http/timestamps.ts';
import type { GrantedPlan } from '../keys/consumer-key.ts';
import type { Decision } from '../limiter/rate-limiter.ts';
import { secondsToReset } from './rate-limit-headers.ts';

/**
 * The answer to a request over its limit: exactly five fields. `Retry-After` is at least one second and never before the reset, and
 * `resetTime` is the same instant as in the rate-limit fields.
 */
export function limitAnswer(plan: GrantedPlan, denial: Extract<Decision, { kind: 'denied' }>): ErrorAnswer {
  return {
    status: 429,
    headers: { 'Retry-After': String(Math.max(1, secondsToReset(denial))) },
    body: bodyOf(plan, denial.resetAtMs),
  };
}

/** The last body of each plan's copy: a client that goes on past its limit gets the same one until the reset. */
const lastBodies = new WeakMap<GrantedPlan, { readonly resetAtMs: number; readonly text: string }>();

function bodyOf(plan: GrantedPlan, resetAtMs: number): string {
  const last = lastBodies.get(plan);
  if (last?.resetAtMs === resetAtMs) return last.text;
  const text = JSON.stringify({
    error: 'Rate limit exceeded. Try again after the reset time.',
    limit: plan.limit,
    period: plan.periodText,
    remaining: 0,
    resetTime: isoSecondsUp(resetAtMs),
  });
  lastBodies.set(plan, { resetAtMs, text });
  return text;
}
