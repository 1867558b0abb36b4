import { flatText } from '../../http/flat-text.ts';
import { type DecidedWindow, remainingIn, tightestWindow } from '../../limiter/decided-window.ts';
import { type Limit, MAIN_LIMIT_ID } from '../../limiter/limit.ts';
import { periodSeconds } from '../../limiter/period.ts';
import type { Decision } from '../../limiter/rate-limiter.ts';

/** Headers that only the gateway writes: those of a backend never reach the client. Lower case. */
export const RATE_LIMIT_HEADERS = [
  'ratelimit-policy',
  'ratelimit',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
] as const;

/**
 * The lines of the rate-limit headers: `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11 with every enforced
 * window that applied, and the older `X-RateLimit-*` of the tightest. Empty for a decision without the shared counter
 * (degraded) or without a limit (unlimited). Resets are rounded up, so that the window is over for a client that retries at the reset.
 */
export function rateLimitLines(planId: string, decision: Decision): string {
  if ((decision.kind !== 'allowed' && decision.kind !== 'limited') || decision.degraded) return '';
  const { windows, nowMs } = decision;
  const tightest = tightestWindow(windows);
  if (tightest === undefined) return '';
  const remaining = String(remainingIn(tightest));
  const end = `\r\nX-RateLimit-Remaining: ${remaining}\r\nX-RateLimit-Reset: ${Math.ceil(tightest.resetAtMs / 1000)}\r\n`;
  const start = windows.length === 1 ? textsOf(tightest.limit, planId).start : undefined;
  if (start !== undefined) return `${start}${remaining};t=${secondsToReset(tightest, nowMs)}${end}`;
  let policies = '';
  let states = '';
  for (const window of windows) {
    if (window.limit.mode !== 'enforce') continue;
    const { name, policy } = textsOf(window.limit, planId);
    const separator = policies === '' ? '' : ', ';
    policies += separator + (policy ?? policyOf(name, window.quota, window.limit));
    states += `${separator}${name};r=${remainingIn(window)};t=${secondsToReset(window, nowMs)}`;
  }
  return `${startOf(policies, tightest.quota)}${states}${end}`;
}

/** Whole seconds until the window ends, rounded up, never negative. */
export function secondsToReset({ resetAtMs }: DecidedWindow, nowMs: number): number {
  return Math.max(0, Math.ceil((resetAtMs - nowMs) / 1000));
}

/** What is the same for every request under a limit. */
interface LimitTexts {
  readonly name: string;
  /** Undefined where the limit changes with time. */
  readonly policy: string | undefined;
  /** The lines up to the remaining count, if this is the only limit. Undefined where the limit changes with time. */
  readonly start: string | undefined;
}

/** Each limit object belongs to one copy of one plan, and lives as long as that copy. */
const textsOfLimits = new WeakMap<Limit, LimitTexts>();

function textsOf(limit: Limit, planId: string): LimitTexts {
  const known = textsOfLimits.get(limit);
  if (known !== undefined) return known;
  // Ids have only characters that need no escape in a structured field's string.
  const name = limit.id === MAIN_LIMIT_ID ? `"${planId}"` : `"${planId}.${limit.id}"`;
  const policy = limit.endsAtMs === null ? policyOf(name, limit.limit, limit) : undefined;
  const start = policy && flatText(`${startOf(policy, limit.limit)}${name};r=`);
  const texts = { name, policy, start };
  textsOfLimits.set(limit, texts);
  return texts;
}

function startOf(policies: string, quota: number): string {
  return `RateLimit-Policy: ${policies}\r\nX-RateLimit-Limit: ${quota}\r\nRateLimit: `;
}

function policyOf(name: string, quota: number, { period }: Limit): string {
  return `${name};q=${quota};w=${periodSeconds(period)}`;
}
