import type { UsageBatch } from '../live-usage.ts';
import type { Counts, UsageSlice } from '../usage-slice.ts';
import type { PendingRow, SeriesSelection } from './series-store.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What the batches of a key add to a series: hours, or days by endpoint or by customer. */
export function pendingRows(
  batches: readonly UsageBatch[],
  rows: SeriesSelection['source'],
): readonly PendingRow[] {
  return batches.flatMap(({ source, id, slices }) =>
    slices.flatMap((slice) =>
      rowsOf(slice, rows).map((row) => ({ source, batchId: id, planId: slice.planId, ...row })),
    ),
  );
}

function rowsOf(
  slice: UsageSlice,
  rows: SeriesSelection['source'],
): readonly Pick<PendingRow, 'atMs' | 'name' | 'counts'>[] {
  const ofDay = (list: ReadonlyMap<string, Counts>) =>
    [...list].map(([name, counts]) => ({ atMs: slice.day * DAY_MS, name, counts }));
  switch (rows) {
    case 'endpointDays':
      return ofDay(slice.endpoints);
    case 'customerDays':
      return ofDay(slice.customers);
    case 'hours':
    case 'totalHours':
      return [...slice.hours].map(([hour, counts]) => ({ atMs: hour * HOUR_MS, name: '', counts }));
  }
}
