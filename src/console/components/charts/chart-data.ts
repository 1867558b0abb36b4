/** The meaning of a series. It decides the colour, which is the same in every chart. `before`: the previous period, dashed. */
export type SeriesTone = 'allowed' | 'limited' | 'failed' | 'before';

export interface ChartSeries {
  readonly name: string;
  readonly tone: SeriesTone;
  /** One value for each of the chart's `starts`; null if it is unknown. */
  readonly values: readonly (number | null)[];
}

export interface ChartData {
  /** The first instant of each bucket, in milliseconds, ascending. */
  readonly starts: readonly number[];
  readonly series: readonly ChartSeries[];
  /** Buckets that end after this instant may still grow; they are drawn lighter. */
  readonly completeUntil?: number | undefined;
  /** The index of a bucket that is pointed out. */
  readonly marked?: number | undefined;
  /** `time`: labels are hours; `date`: days. */
  readonly labels: 'time' | 'date';
  /** The IANA time zone of the labels; by default the browser's. */
  readonly timeZone?: string;
}
