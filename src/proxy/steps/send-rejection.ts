import type { ErrorResponse } from '../../http/errors/error-responses.ts';
import { type DecidedWindow, type Limit, limitAt, rejectingWindow } from '../../limiter/request-limits.ts';
import { isoSecondsUp } from '../../platform/timestamps.ts';
import type { Step } from '../exchange.ts';
import { secondsToReset } from '../headers/response-headers.ts';

/** Responds to the authenticated requests that are not forwarded: over a limit (429), or without a decision (503). */
export function sendRejection(): Step {
  return (exchange) => {
    const { rejection, decision } = exchange;
    const window = decision?.kind === 'limited' ? rejectingWindow(decision.windows) : undefined;
    if (rejection !== undefined) {
      exchange.reject(rejection);
    } else if (decision?.kind === 'limited' && window !== undefined) {
      exchange.respondWith(limitResponse(window, decision.nowMs), 'limited');
    } else {
      exchange.next();
    }
  };
}

/**
 * The response to a request that a window rejected: exactly five fields. `Retry-After` is at least one second and never before the reset,
 * and `resetTime` is the same instant as in the rate-limit headers.
 */
function limitResponse(window: DecidedWindow, nowMs: number): ErrorResponse {
  return {
    status: 429,
    headers: { 'Retry-After': String(Math.max(1, secondsToReset(window, nowMs))) },
    body: bodyOf(window, limitAt(window.limit, nowMs)),
  };
}

interface LastBody {
  readonly resetAtMs: number;
  readonly limit: number;
  readonly text: string;
}

/** The last body of each limit's copy: a client that goes on past its limit gets the same one until the reset. */
const lastBodies = new WeakMap<Limit, LastBody>();

function bodyOf({ limit: rule, resetAtMs }: DecidedWindow, limit: number): string {
  const last = lastBodies.get(rule);
  if (last?.resetAtMs === resetAtMs && last.limit === limit) return last.text;
  const text = JSON.stringify({
    error: 'Rate limit exceeded. Try again after the reset time.',
    limit,
    period: rule.periodText,
    remaining: 0,
    resetTime: isoSecondsUp(resetAtMs),
  });
  lastBodies.set(rule, { resetAtMs, limit, text });
  return text;
}
