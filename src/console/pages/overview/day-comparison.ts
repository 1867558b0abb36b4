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
  /** Of the hours that are over, without the one that runs: it has no equal the day before, of which there are whole hours only. */
  readonly over: Outcomes;
  /** Of the same hours the day before. */
  readonly overBefore: Outcomes;
}

/** The first and the last instant, for `from` and `to`, of the two days that end with the hour of `now`. */
export function twoDays(now: number): { readonly from: number; readonly to: number } {
  const to = Math.ceil((now + 1) / HOUR_MS) * HOUR_MS;
  return { from: to - 2 * HOURS * HOUR_MS, to };
}

/** Hourly rows of the two days that end at `to`, hours without requests filled in. */
export function dayOfOutcomes(rows: readonly UsageRow[], to: number): DayOfOutcomes {
  const byStart = new Map(rows.map((row) => [Date.parse(row.start), outcomesOf(row)]));
  const starts = Array.from({ length: 2 * HOURS }, (_, index) => to - (2 * HOURS - index) * HOUR_MS);
  const all = starts.map((start) => byStart.get(start) ?? NO_REQUESTS);
  const [hoursBefore, hours] = [all.slice(0, HOURS), all.slice(HOURS)];
  return {
    starts: starts.slice(HOURS),
    hours,
    hoursBefore,
    total: sumOf(hours),
    totalBefore: sumOf(hoursBefore),
    over: sumOf(hours.slice(0, -1)),
    overBefore: sumOf(hoursBefore.slice(0, -1)),
  };
}
