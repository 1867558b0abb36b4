import type { Decision, RateLimiter } from '../limiter/rate-limiter.ts';

/** A limiter that says what would be decided, and counts nothing: a request without a cost is counted nowhere. */
export function uncounted(limiter: RateLimiter): RateLimiter {
  return {
    decide(subject, decided) {
      const { cost } = subject;
      limiter.decide({ ...subject, cost: 0 }, (decision) => decided(atCost(decision, cost)));
    },
  };
}

function atCost(decision: Decision, cost: number): Decision {
  if (decision.kind !== 'allowed' || cost === 0) return decision;
  const windows = decision.windows.map((window) => ({
    ...window,
    isExceeded: window.used + cost > window.quota,
  }));
  const isLimited = windows.some(({ isExceeded, limit }) => isExceeded && limit.mode === 'enforce');
  return { ...decision, windows, kind: isLimited ? 'limited' : 'allowed' };
}
