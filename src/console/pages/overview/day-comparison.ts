import { NO_REQUESTS, type Outcomes, outcomesOf, sumOf } from '../../api/outcome-counts.ts';
import type { UsageRow } from '../../api/read-usage-series.ts';

const HOUR_MS = 3_600_000;
/** The hours that the overview shows, and compares with the same number of hours before. */
const HOURS = 24;

export interface DayOfOutcomes {
  /** The first instants of the hours, oldest first. */
  readonly starts: readonly number[];
  readonly hours: readonly Outcomes[];
  readonly hoursBefore: readonly Outcomes[];
  readonly total: Outcomes;
  readonly totalBefore: Outcomes;
  /** Of the day before up to this time of it, as if the requests of an hour came evenly: of an hour that runs there is only a part. */
  readonly totalBeforeByNow: Outcomes;
}

/** The first and the last instant, for `from` and `to`, of the two days that end with the hour of `now`. */
export function twoDays(now: number): { readonly from: number; readonly to: number } {
  const to = Math.ceil((now + 1) / HOUR_MS) * HOUR_MS;
  return { from: to - 2 * HOURS * HOUR_MS, to };
}

/** Hourly rows of the two days that end at `to`, hours without requests filled in. They are complete until `completeUntil`. */
export function dayOfOutcomes(rows: readonly UsageRow[], to: number, completeUntil: number): DayOfOutcomes {
  const byStart = new Map(rows.map((row) => [Date.parse(row.start), outcomesOf(row)]));
  const starts = Array.from({ length: 2 * HOURS }, (_, index) => to - (2 * HOURS - index) * HOUR_MS);
  const all = starts.map((start) => byStart.get(start) ?? NO_REQUESTS);
  const [hoursBefore, hours] = [all.slice(0, HOURS), all.slice(HOURS)];
  const passed = Math.min(Math.max(1 - (to - completeUntil) / HOUR_MS, 0), 1);
  const last = hoursBefore.slice(-1).map((hour) => shareOf(hour, passed));
  return {
    starts: starts.slice(HOURS),
    hours,
    hoursBefore,
    total: sumOf(hours),
    totalBefore: sumOf(hoursBefore),
    totalBeforeByNow: sumOf([...hoursBefore.slice(0, -1), ...last]),
  };
}

function shareOf(outcomes: Outcomes, share: number): Outcomes {
  const part = (count: number) => Math.round(count * share);
  return {
    requests: part(outcomes.requests),
    allowed: part(outcomes.allowed),
    limited: part(outcomes.limited),
    failed: part(outcomes.failed),
    shadowLimited: part(outcomes.shadowLimited),
    averageResponseTimeMs: outcomes.averageResponseTimeMs,
    forwarded: part(outcomes.forwarded),
  };
}
