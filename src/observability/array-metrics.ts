/** The interface that prom-client's registry needs of a metric. */
interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

interface Scrape {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly values: readonly Sample[];
  /** How prom-client merges the metrics of several workers. */
  readonly aggregator: 'sum';
}

type Labels<L extends string> = Readonly<Record<L, readonly string[]>>;

/**
 * A counter whose label values are closed sets, kept in one flat array: an increment costs an index and an addition,
 * where prom-client's own counter would hash its labels. prom-client's registry scrapes it like its own.
 */
export class ArrayCounter<L extends string> {
  readonly name: string;
  readonly #help: string;
  readonly #labels: Labels<L>;
  /** The number of values of each label. */
  readonly #sizes: readonly number[];
  readonly #counts: Float64Array;

  constructor(name: string, help: string, labels: Labels<L>) {
    this.name = name;
    this.#help = help;
    this.#labels = labels;
    this.#sizes = (Object.values(labels) as (readonly string[])[]).map((values) => values.length);
    this.#counts = new Float64Array(this.#sizes.reduce((product, size) => product * size, 1));
  }

  /** Adds one. `positions` are indexes into each label's values, in the order of the labels. */
  add(positions: readonly number[]): void {
    const index = this.#index(positions);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  get(): Promise<Scrape> {
    const names = Object.keys(this.#labels) as L[];
    const values: Sample[] = [];
    for (let index = 0; index < this.#counts.length; index++) {
      const value = this.#counts[index] ?? 0;
      if (value > 0) values.push({ labels: this.#labelsAt(index, names), value });
    }
    return Promise.resolve({ name: this.name, help: this.#help, type: 'counter', values, aggregator: 'sum' });
  }

  #index(positions: readonly number[]): number {
    const sizes = this.#sizes;
    let index = 0;
    for (let label = 0; label < sizes.length; label += 1) {
      index = index * (sizes[label] ?? 0) + (positions[label] ?? 0);
    }
    return index;
  }

  #labelsAt(index: number, names: readonly L[]): Record<string, string> {
    const labels: Record<string, string> = {};
    let rest = index;
    for (const name of names.toReversed()) {
      const values = this.#labels[name];
      labels[name] = values[rest % values.length] ?? '';
      rest = Math.floor(rest / values.length);
    }
    return labels;
  }
}

/** Help text, buckets and label of a histogram. */
interface HistogramOptions {
  readonly help: string;
  /** Upper bounds of the buckets, ascending. Seconds. */
  readonly bounds: readonly number[];
  readonly label?: { readonly name: string; readonly values: readonly string[] };
}

/**
 * A histogram with at most one label of a closed set. An observation costs a short linear search and three additions; cumulative
 * counts are made when it is scraped. Values and bounds are seconds.
 */
export class ArrayHistogram {
  readonly name: string;
  readonly #help: string;
  readonly #label: string | undefined;
  readonly #series: readonly string[];
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  readonly #sums: Float64Array;

  constructor(name: string, { help, bounds, label }: HistogramOptions) {
    this.name = name;
    this.#help = help;
    this.#label = label?.name;
    this.#series = label?.values ?? [''];
    this.#bounds = bounds;
    this.#counts = new Float64Array(this.#series.length * (bounds.length + 1));
    this.#sums = new Float64Array(this.#series.length);
  }

  /** Counts one value, in seconds, under the label's value at `position`. */
  observe(seconds: number, position = 0): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket++;
    const index = position * (bounds.length + 1) + bucket;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sums[position] = (this.#sums[position] ?? 0) + seconds;
  }

  get(): Promise<Scrape> {
    const values = this.#series.flatMap((series, position) => this.#samplesOf(series, position));
    return Promise.resolve({
      name: this.name,
      help: this.#help,
      type: 'histogram',
      values,
      aggregator: 'sum',
    });
  }

  #samplesOf(series: string, position: number): readonly Sample[] {
    const labels: Record<string, string> = this.#label === undefined ? {} : { [this.#label]: series };
    const offset = position * (this.#bounds.length + 1);
    let seen = 0;
    const buckets = [...this.#bounds, '+Inf'].map((bound, bucket) => {
      seen += this.#counts[offset + bucket] ?? 0;
      return { metricName: `${this.name}_bucket`, labels: { le: bound, ...labels }, value: seen };
    });
    if (seen === 0 && this.#label !== undefined) return [];
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: this.#sums[position] ?? 0 },
      { metricName: `${this.name}_count`, labels, value: seen },
    ];
  }
}
