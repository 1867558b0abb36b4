import type { UsageRow } from '../../api/usage-series.ts';

/** What became of requests: each is one of `allowed`, `limited` and `failed`. */
interface Outcomes {
  readonly requests: number;
  readonly allowed: number;
  /** Rejected with 429. */
  readonly limited: number;
  /** Failed for another reason: an error of the client or the backend, or cut off. */
  readonly failed: number;
  readonly averageResponseTimeMs: number;
}

const HOUR_MS = 3_600_000;
/** How many hours the overview looks back, and compares with as many before. */
const HOURS = 24;

export interface DayOfOutcomes {
  /** The first instants of the hours, oldest first. */
  readonly starts: readonly number[];
  readonly hours: readonly Outcomes[];
  readonly hoursBefore: readonly Outcomes[];
  readonly total: Outcomes;
  readonly totalBefore: Outcomes;
}

/** The instants of the two days that end with the hour of `now`, for `from` and `to`. */
export function twoDays(now: number): { readonly from: number; readonly to: number } {
  const to = Math.ceil((now + 1) / HOUR_MS) * HOUR_MS;
  return { from: to - 2 * HOURS * HOUR_MS, to };
}

/** Hourly rows of the two days that end at `to`, hours without requests filled in. */
export function dayOfOutcomes(rows: readonly UsageRow[], to: number): DayOfOutcomes {
  const byStart = new Map(rows.map((row) => [Date.parse(row.start), outcomesOf(row)]));
  const starts = Array.from({ length: 2 * HOURS }, (_, index) => to - (2 * HOURS - index) * HOUR_MS);
  const all = starts.map((start) => byStart.get(start) ?? NONE);
  const [hoursBefore, hours] = [all.slice(0, HOURS), all.slice(HOURS)];
  return {
    starts: starts.slice(HOURS),
    hours,
    hoursBefore,
    total: sum(hours),
    totalBefore: sum(hoursBefore),
  };
}

function outcomesOf(row: UsageRow): Outcomes {
  return {
    requests: row.requests,
    allowed: row.successful,
    limited: row.rateLimited,
    failed: row.failed - row.rateLimited,
    averageResponseTimeMs: row.averageResponseTimeMs,
  };
}

const NONE: Outcomes = { requests: 0, allowed: 0, limited: 0, failed: 0, averageResponseTimeMs: 0 };

function sum(all: readonly Outcomes[]): Outcomes {
  const total = all.reduce(
    (one, other) => ({
      requests: one.requests + other.requests,
      allowed: one.allowed + other.allowed,
      limited: one.limited + other.limited,
      failed: one.failed + other.failed,
      // The mean is over forwarded requests: weighed by those that were not limited.
      averageResponseTimeMs:
        one.averageResponseTimeMs + other.averageResponseTimeMs * (other.requests - other.limited),
    }),
    NONE,
  );
  const forwarded = total.requests - total.limited;
  return { ...total, averageResponseTimeMs: forwarded === 0 ? 0 : total.averageResponseTimeMs / forwarded };
}
