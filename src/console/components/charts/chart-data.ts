/** What a series means decides its colour: the three outcomes look the same in every chart. `before`: the period before, dashed. */
export type SeriesTone = 'allowed' | 'limited' | 'failed' | 'other' | 'before';

export interface ChartSeries {
  readonly name: string;
  readonly tone: SeriesTone;
  /** One for each of the chart's `starts`; null: not known. */
  readonly values: readonly (number | null)[];
}

export interface ChartData {
  /** The first instant of each bucket, in milliseconds, ascending. */
  readonly starts: readonly number[];
  readonly series: readonly ChartSeries[];
  /** Buckets that end after this instant may still grow; they are drawn lighter. */
  readonly completeUntil?: number | undefined;
  /** `time`: labels are hours; `date`: days. */
  readonly labels: 'time' | 'date';
  /** Of the labels, by its IANA name; the browser's where it is missing. */
  readonly timeZone?: string;
}
