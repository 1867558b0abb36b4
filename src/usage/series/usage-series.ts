import { RangeTooLarge, StoreUnavailable, UnsupportedGrouping } from '../../errors.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Outage } from '../../platform/outage-history.ts';
import type { LiveUsage, UsageBatch } from '../live-usage.ts';
import type { Counts, UsageSlice } from '../usage-slice.ts';
import {
  type Grouping,
  isOfSomeKeys,
  type PendingRow,
  type SeriesFilter,
  type SeriesPosition,
  type SeriesRow,
  type SeriesSelection,
  type SeriesStore,
} from './series-store.ts';
import {
  bucketStarts,
  bucketsFrom,
  type Interval,
  quartersAndHours,
  type TimeSpan,
  wholeDays,
  wholeHours,
} from './time-buckets.ts';
import type { TimeZone } from './time-zone.ts';

/** A requested series. */
export interface SeriesRequest {
  readonly span: TimeSpan;
  readonly interval: Interval;
  readonly zone: TimeZone;
  /** At most two, all different. */
  readonly groupBy: readonly Grouping[];
  readonly filter: SeriesFilter;
  readonly top: number | undefined;
}

/** A page of a series. */
export interface SeriesPage {
  /** The requested range, rounded outwards to whole hours or days. */
  readonly span: TimeSpan;
  /** Buckets that end before this instant change no more, in milliseconds since 1970. Never after the span. */
  readonly completeUntilMs: number;
  readonly rows: readonly SeriesRow[];
  /** The row after which the next page begins; missing on the last page. */
  readonly next?: SeriesPosition;
}

/** What is needed to read series. */
export interface UsageSeriesOptions {
  readonly store: SeriesStore;
  readonly clock: Clock;
  /** Days for which hours are kept. */
  readonly retentionDays: number;
  /** Days for which days by endpoint and by customer are kept. */
  readonly dailyRetentionDays: number;
  /**
   * What is not in the history yet. `oldestAtMs` while that can't be read: an instant before which nothing can be missing from the history;
   * undefined if none is known.
   */
  readonly pending: Pick<LiveUsage, 'read' | 'oldestAtMs'> & {
    readonly knownOldestAtMs: () => number | undefined;
  };
  /** When replicas could not write to the live usage, oldest first. */
  readonly outages: () => readonly Outage[];
}

/** Most rows that a series may have, and so most buckets. */
export const MAX_SERIES_ROWS = 10_000;

/** What to read for a request. */
interface Reading extends SeriesSelection {
  /** That of the response. Longer than `span` where no rows can be. */
  readonly responseSpan: TimeSpan;
}

const DAY_MS = 86_400_000;
/** Rows may be older than they are kept for, as they are removed in whole months, and newer than now by the clock of another replica. */
const MARGIN_MS = 62 * DAY_MS;
/**
 * Longer than a record stays in its replica while the stores respond or fail for less than two seconds, plus the difference between clocks.
 * Milliseconds.
 */
const LATE_MS = 5000;
/** Time within which each replica, after an outage of the live usage, writes what it buffered meanwhile. Milliseconds. */
const CATCH_UP_MS = 5000;

/** Reads usage over time. */
export class UsageSeries {
  readonly #options: UsageSeriesOptions;

  constructor(options: UsageSeriesOptions) {
    this.#options = options;
  }

  /**
   * At most `limit` rows of a series: those after a position, else the first ones. Counts that are not in the history yet are missing, as
   * `completeUntilMs` says, also while the live usage is unavailable. Throws `UnsupportedGrouping` if the stored rows can't be grouped so, `RangeTooLarge` for a series of more than
   * 10 000 rows, `StoreUnavailable`.
   */
  async read(request: SeriesRequest, limit: number, after?: SeriesPosition): Promise<SeriesPage> {
    const reading = this.#readingOf(request);
    // Read before the rows, which then include all that is in the history at this time.
    const settledUntilMs = await this.completeUntilMs();
    if (settledUntilMs === undefined) return this.#readHistory(reading, limit, after);
    return this.#readPage(reading, settledUntilMs, { limit, after });
  }

  /** Before this instant all usage is in the history, in milliseconds since 1970; undefined while that is not known. */
  async completeUntilMs(): Promise<number | undefined> {
    const nowMs = this.#options.clock.nowMs();
    const oldestAtMs = await this.#unlessAway(
      async () => (await this.#options.pending.oldestAtMs()) ?? nowMs,
    );
    return oldestAtMs && this.#settledUntil(Math.min(oldestAtMs, nowMs));
  }

  /**
   * Reads a series of one key, including counts that are not in the history yet. While the live usage is unavailable they are missing, as
   * `completeUntilMs` says.
   */
  async readKey(
    { keyId, ...request }: SeriesRequest & { readonly keyId: string },
    limit: number,
    after?: SeriesPosition,
  ): Promise<SeriesPage> {
    const filter = { ...request.filter, keyId };
    const reading = this.#readingOf({ ...request, filter });
    const nowMs = this.#options.clock.nowMs();
    // Read before the history. Counts that are moved in between are in its rows, and the store does not add them again.
    const batches = await this.#unlessAway(() => this.#options.pending.read([keyId]));
    if (batches === undefined) return this.#readHistory(reading, limit, after);
    const pending = pendingRows(batches, reading.source);
    return this.#readPage({ ...reading, pending }, this.#settledUntil(nowMs), { limit, after });
  }

  /** A page of what the history has. */
  #readHistory(reading: Reading, limit: number, after: SeriesPosition | undefined): Promise<SeriesPage> {
    const known = this.#options.pending.knownOldestAtMs();
    const settledUntilMs = known === undefined ? reading.responseSpan.fromMs : this.#settledUntil(known);
    return this.#readPage(reading, settledUntilMs, { limit, after });
  }

  /** Undefined if the live usage is unavailable. */
  async #unlessAway<Result>(read: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof StoreUnavailable && error.store === 'redis') return undefined;
      throw error;
    }
  }

  /** Until when the counts include all requests, if they include all that was written before `writtenUntilMs`. */
  #settledUntil(writtenUntilMs: number): number {
    // Requests during an outage are written only after it.
    const held = this.#options.outages().find(({ toMs }) => writtenUntilMs < toMs + CATCH_UP_MS);
    return Math.min(writtenUntilMs, held?.fromMs ?? writtenUntilMs) - LATE_MS;
  }

  async #readPage(
    reading: Reading,
    settledUntilMs: number,
    { limit, after }: { readonly limit: number; readonly after: SeriesPosition | undefined },
  ): Promise<SeriesPage> {
    // One row more than requested shows whether there is a next page.
    const { rows: found, total } = await this.#options.store.read(reading, limit + 1, after);
    if (total > MAX_SERIES_ROWS) throw await this.#tooLarge(reading);
    const rows = found.slice(0, limit);
    const last = rows.at(-1);
    const next = found.length > limit && last !== undefined ? { next: last } : {};
    const span = reading.responseSpan;
    return { span, completeUntilMs: Math.min(settledUntilMs, span.toMs), rows, ...next };
  }

  #readingOf({ span: requested, interval, zone, groupBy, filter, top }: SeriesRequest): Reading {
    const source = sourceOf(groupBy, filter);
    const isByDay = source === 'endpointDays' || source === 'customerDays';
    const areUtcDays = interval !== 'hour' && zone.isUtc;
    if (isByDay && !areUtcDays) throw new UnsupportedGrouping();
    const keptSinceMs = this.#hoursSince();
    // One bucket for the whole span has no borders at which days of UTC would have to be split.
    const mayBeByDay = areUtcDays || interval === 'total';
    const hoursSinceMs = source === 'hours' && mayBeByDay ? keptSinceMs : undefined;
    const responseSpan = isByDay ? wholeDays(requested) : spanOfHours(requested, zone, hoursSinceMs);
    requireFewBuckets(responseSpan, interval, zone);
    const span = this.#withRows(responseSpan);
    const starts = interval === 'total' ? [responseSpan.fromMs] : bucketStarts(span, interval, zone);
    const ranked =
      keptSinceMs <= span.fromMs ? quartersAndHours(span, this.#options.clock.nowMs()) : undefined;
    const rows = { span, responseSpan, source, hoursSinceMs, quartersAndHours: ranked, pending: [] };
    return { ...rows, interval, bucketStarts: starts, groupBy, filter, top };
  }

  /** The part of a span that can have rows: computing the days of a zone takes time, and a span may have many years without rows. */
  #withRows({ fromMs, toMs }: TimeSpan): TimeSpan {
    const { clock, retentionDays, dailyRetentionDays } = this.#options;
    const keptMs = Math.max(retentionDays, dailyRetentionDays) * DAY_MS;
    const today = Math.floor(clock.nowMs() / DAY_MS) * DAY_MS;
    const within = (ms: number) => Math.min(Math.max(ms, today - keptMs - MARGIN_MS), today + MARGIN_MS);
    return { fromMs: within(fromMs), toMs: within(toMs) };
  }

  /** The first day of UTC whose hours are all kept. */
  #hoursSince(): number {
    const { clock, retentionDays } = this.#options;
    return Math.ceil((clock.nowMs() - retentionDays * DAY_MS) / DAY_MS) * DAY_MS;
  }

  async #tooLarge(reading: Reading): Promise<RangeTooLarge> {
    const fromMs = reading.responseSpan.fromMs;
    const toMs = await this.#options.store.startOfRow(reading, MAX_SERIES_ROWS);
    return new RangeTooLarge(toMs === undefined || toMs <= fromMs ? undefined : { fromMs, toMs });
  }
}

function requireFewBuckets({ fromMs, toMs }: TimeSpan, interval: Interval, zone: TimeZone): void {
  const firstBeyond = bucketsFrom(fromMs, interval, zone)(MAX_SERIES_ROWS);
  if (firstBeyond < toMs) throw new RangeTooLarge({ fromMs, toMs: firstBeyond });
}

function sourceOf(groupBy: readonly Grouping[], filter: SeriesFilter): SeriesSelection['source'] {
  const [byEndpoint, byCustomer] = [groupBy.includes('endpoint'), groupBy.includes('customer')];
  if (byEndpoint && byCustomer) throw new UnsupportedGrouping();
  if (byEndpoint) return 'endpointDays';
  if (byCustomer) return 'customerDays';
  return groupBy.includes('key') || isOfSomeKeys(filter) ? 'hours' : 'totalHours';
}

/** The span in whole hours; an end before `hoursSinceMs`, where days are read instead of hours, in whole days. */
function spanOfHours(requested: TimeSpan, zone: TimeZone, hoursSinceMs = Number.NEGATIVE_INFINITY): TimeSpan {
  const [hours, days] = [wholeHours(requested, zone), wholeDays(requested)];
  return {
    fromMs: hours.fromMs < hoursSinceMs ? days.fromMs : hours.fromMs,
    toMs: hours.toMs < hoursSinceMs ? days.toMs : hours.toMs,
  };
}

const HOUR_MS = 3_600_000;

/** What the batches of a key add to a series: hours, or days by endpoint or by customer. */
function pendingRows(batches: readonly UsageBatch[], rows: SeriesSelection['source']): readonly PendingRow[] {
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
