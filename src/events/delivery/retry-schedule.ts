import type { Random } from '../../platform/random.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The pauses before the retries. */
const PAUSES_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  DAY_MS,
];

/** A delivery that failed. */
export interface FailedTry {
  /** The number of attempts so far, at least 1. */
  readonly tries: number;
  /** The value of `Retry-After` in the response. */
  readonly retryAfter: string | null;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * When the next attempt is due, in milliseconds since 1970; undefined if there is none. Pauses are prolonged at random by up to a tenth, so
 * that an endpoint that returns is not met by all of them at once. `Retry-After` prolongs a pause to at most a day.
 */
export function nextAttemptAt({ tries, retryAfter, nowMs }: FailedTry, random: Random): number | undefined {
  const pauseMs = PAUSES_MS[tries - 1];
  if (pauseMs === undefined) return undefined;
  const jittered = pauseMs * (1 + random.bytes(2).readUInt16BE() / 0x1_0000 / 10);
  return Math.round(nowMs + Math.max(jittered, requestedPauseMs(retryAfter, nowMs)));
}

/** The pause that a `Retry-After` of seconds or a date requests, at most a day, RFC 9110 section 10.2.3. 0 if it requests none. */
export function requestedPauseMs(retryAfter: string | null, nowMs: number): number {
  if (retryAfter === null) return 0;
  const ms = /^\d{1,10}$/.test(retryAfter) ? Number(retryAfter) * SECOND_MS : Date.parse(retryAfter) - nowMs;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), DAY_MS) : 0;
}
