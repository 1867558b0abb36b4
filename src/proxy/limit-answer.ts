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
    body: JSON.stringify({
      error: 'Rate limit exceeded. Try again after the reset time.',
      limit: plan.limit,
      period: plan.periodText,
      remaining: 0,
      resetTime: isoSecondsUp(denial.resetAtMs),
    }),
  };
}
