type LabelledValue = readonly [labels: Readonly<Record<string, string>>, value: number];

/** A number that is kept elsewhere and read when Prometheus scrapes. */
export interface Reading {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  /** How the numbers of several workers are merged; the sum by default. */
  readonly ofWorkers?: 'sum' | 'max' | 'min';
  readonly read: () => number | readonly LabelledValue[];
}

/** A histogram that is kept elsewhere, as counts for each bucket that are not cumulative. The last bucket has no upper bound. */
export interface BucketReading {
  readonly name: string;
  readonly help: string;
  readonly boundsSeconds: readonly number[];
  readonly read: () => { readonly counts: readonly number[]; readonly sumSeconds: number };
}

/** Values by the name that is their label. */
export function labelled<Name extends string>(
  label: string,
  values: Readonly<Record<Name, number>>,
): readonly LabelledValue[] {
  return Object.entries<number>(values).map(([name, value]) => [{ [label]: name }, value]);
}

/** A metric whose value may fall. */
export function gauge(
  name: string,
  help: string,
  read: Reading['read'],
  ofWorkers: Reading['ofWorkers'] = 'sum',
): Reading {
  return { name, help, type: 'gauge', ofWorkers, read };
}

/** A metric whose value only grows. */
export function counter(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'counter', read };
}
