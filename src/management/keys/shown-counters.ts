import { StoreUnavailable } from '../../errors.ts';
import type { KeySnapshot } from '../../keys/consumer-key.ts';
import { windowEndMs } from '../../limiter/period.ts';
import { type Limit, limitAt } from '../../limiter/request-limits.ts';
import type { WindowCounter, WindowCounts } from '../../limiter/window-counters.ts';
import { isoSecondsUp } from '../../platform/timestamps.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';

/** The live counters of a key's limits. */
export const SHOWN_COUNTERS = listOf(
  named(
    'LimitCounter',
    objectOf({
      limitId: TEXT,
      limit: { ...COUNT, description: 'What holds now: the override of the key where it has one.' },
      baseLimit: { ...COUNT, description: 'What the plan says.' },
      period: TEXT,
      per: { type: 'string', enum: ['key', 'customer'] },
      mode: { type: 'string', enum: ['enforce', 'shadow'] },
      used: orNull(COUNT),
      granted: { ...orNull(COUNT), description: 'Room given in this window beyond the limit.' },
      remaining: orNull(COUNT),
      resetTime: { ...orNull(INSTANT), description: 'Of a window that is not open: if it opened now.' },
      open: { anyOf: [{ type: 'boolean' }, { type: 'null' }] },
    }),
  ),
);

/** The result of reading counters; undefined if Redis is unavailable. */
export function ifAvailable<Counts>(reading: Promise<Counts>): Promise<Counts | undefined> {
  return reading.catch((error: unknown) => {
    if (error instanceof StoreUnavailable && error.store === 'redis') return undefined;
    throw error;
  });
}

/** If `counts` is undefined, because Redis is unavailable, the counters are null. */
export function presentCounters(
  plan: KeySnapshot['plan'],
  counts: WindowCounts | undefined,
  nowMs: number,
): readonly object[] {
  if (counts !== undefined) return counts.counters.map((counter) => presentCounter(counter, nowMs));
  const limits = plan?.limits.all ?? [];
  return limits.map((limit) => ({ ...presentRule(limit, nowMs), ...UNKNOWN }));
}

const UNKNOWN = { used: null, granted: null, remaining: null, resetTime: null, open: null };

function presentRule(limit: Limit, nowMs: number): object {
  const { id, baseLimit, periodText, per, mode } = limit;
  return { limitId: id, limit: limitAt(limit, nowMs), baseLimit, period: periodText, per, mode };
}

function presentCounter({ limit, used, granted, resetAtMs }: WindowCounter, nowMs: number): object {
  return {
    ...presentRule(limit, nowMs),
    used,
    granted,
    remaining: Math.max(0, limitAt(limit, nowMs) + granted - used),
    resetTime: isoSecondsUp(resetAtMs ?? windowEndMs(nowMs, limit.period)),
    open: resetAtMs !== null,
  };
}
