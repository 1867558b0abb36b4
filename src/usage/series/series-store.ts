import type { Counts } from '../usage-slice.ts';
import type { Interval, QuartersAndHours, TimeSpan } from './time-buckets.ts';

/** What the requests of a series may be grouped by. */
export const GROUPINGS = ['key', 'rateLimit', 'endpoint', 'customer'] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** Which requests a series counts: those that meet all given conditions. */
export interface SeriesFilter {
  readonly keyId?: string;
  /** Of these keys, which may include deleted ones. */
  readonly keyIds?: readonly string[];
  /** The plan that applied when the request was made. */
  readonly planId?: string;
  /** Of keys that have this tag now. A deleted key has none. */
  readonly tag?: string;
  /** Of keys that have all of these tags now; empty: of all keys. */
  readonly onlyTags?: readonly string[];
  /** Of keys that belong to this owner now. */
  readonly externalId?: string;
}

/** Whether a filter leaves some keys out. */
export function isOfSomeKeys({ keyId, keyIds, tag, onlyTags = [], externalId }: SeriesFilter): boolean {
  return onlyTags.length > 0 || [keyId, keyIds, tag, externalId].some((field) => field !== undefined);
}

/** What to read from the stored hours and days. */
export interface SeriesSelection {
  /** Whole hours, or whole days of UTC if `source` is of days. */
  readonly span: TimeSpan;
  /** Which rows are summed: hours of all keys together, hours of each key, or days by endpoint or by customer. */
  readonly source: 'totalHours' | 'hours' | 'endpointDays' | 'customerDays';
  /**
   * Hours before this instant, the start of a day of UTC, may have been removed: days by endpoint are read instead. Undefined if the source
   * is not `hours`, or if days can't replace hours because the buckets are hours, or days or months of another time zone.
   */
  readonly hoursSinceMs: number | undefined;
  /** The span in quarters of days and hours, of which both are kept for each key; undefined if they may have been removed. */
  readonly quartersAndHours: QuartersAndHours | undefined;
  readonly interval: Interval;
  /** First instants of the buckets, in order. The first is not after the span's start. */
  readonly bucketStarts: readonly number[];
  /** At most two, all different. */
  readonly groupBy: readonly Grouping[];
  readonly filter: SeriesFilter;
  /** Counts of the filter's key, to be added unless the history has them. Empty without such a filter. */
  readonly pending: readonly PendingRow[];
  /** The number of groups with separate rows, those with the most requests in the span; the rest is `__other__`. Undefined = all groups. */
  readonly top: number | undefined;
}

/** The counts that series have. */
export type SeriesCounts = Readonly<Omit<Counts, 'bytesIn' | 'bytesOut' | 'units'>>;

/** Counts of a key that may not be in the history yet: they are missing there if its last batch of their source has a lower id. */
export interface PendingRow {
  readonly source: string;
  readonly batchId: number;
  /** The start of an hour or of a day of UTC, in milliseconds since 1970. */
  readonly atMs: number;
  readonly planId: string;
  /** The endpoint or the customer; empty for an hour. */
  readonly name: string;
  readonly counts: SeriesCounts;
}

/** The position of a row: rows are in the order of their starts, then of their groups by bytes. */
export interface SeriesPosition {
  readonly startMs: number;
  /** In the order of `groupBy`. A plan is '' where none applied. */
  readonly group: readonly string[];
}

/** The requests of one group in one bucket; at least one. */
export interface SeriesRow extends SeriesPosition {
  readonly counts: SeriesCounts;
}

/** Some of a series' rows. */
export interface SeriesRows {
  readonly rows: readonly SeriesRow[];
  /** The number of rows of the whole series. 0 if `rows` is empty. */
  readonly total: number;
}

/** Sums of what the history keeps by time. Every method rejects with `StoreUnavailable` when the store does not respond. */
export interface SeriesStore {
  /** At most `limit` rows: those after a position, else the first ones. */
  read(selection: SeriesSelection, limit: number, after?: SeriesPosition): Promise<SeriesRows>;
  /** The start of the row that has `index` rows before it; undefined when there are fewer rows. */
  startOfRow(selection: SeriesSelection, index: number): Promise<number | undefined>;
}
