/** A median and how far the values spread around it. */
export interface Spread {
  readonly median: number;
  /** First and third quartile. */
  readonly low: number;
  readonly high: number;
}

/** NaN for no values. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), low: quantile(values, 0.25), high: quantile(values, 0.75) };
}

/** How far a ratio that should be 1 is from it: the larger distance of its quartiles. */
export function distanceFromOne({ low, high }: Spread): number {
  return Math.max(Math.abs(low - 1), Math.abs(high - 1));
}

/** The values in an order that chance decides. */
export function shuffled<Value>(values: readonly Value[]): readonly Value[] {
  return values
    .map((value) => ({ value, rank: Math.random() }))
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ value }) => value);
}

/** Between the two nearest values in proportion. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)] ?? Number.NaN;
  const above = sorted[Math.ceil(at)] ?? Number.NaN;
  return below + (above - below) * (at - Math.floor(at));
}
