import {
  MANAGEMENT_OUTCOMES,
  managementOutcomeOf,
  OUTCOMES,
  type Outcome,
  ROUTES,
  type Route,
} from './outcomes.ts';

/** The part of a decision that is counted. */
interface ObservedDecision {
  readonly kind: string;
  readonly windows?: readonly {
    readonly isExceeded: boolean;
    readonly limit: { readonly mode: 'enforce' | 'shadow' };
  }[];
}

const LIMIT_OUTCOMES = ['allowed', 'limited'] as const;
const MODES = ['enforce', 'shadow'] as const;

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'] as const;
const OTHER_METHOD = METHODS.length - 1;
const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

/** Position of a status in `STATUS_CLASSES`. A backend may send up to 999; RFC 9110, section 15: a status above 599 is treated as a 5xx. */
function statusClassOf(status: number): number {
  return Math.min(Math.floor(status / 100), STATUS_CLASSES.length - 1);
}

const DURATION_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const OVERHEAD_BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

/** The operation of a management request that reached no endpoint: an unknown path, another method, wrong credentials. */
const NO_OPERATION = 'none';

/** The part of a proxied request that is counted. */
export interface RequestSample {
  readonly method: string;
  /** 0 if the client disconnected before there was a response. */
  readonly status: number;
  readonly durationMs: number;
  /** Time in the gateway, without the backend. */
  readonly gatewayMs: number;
}

/** The part of a management request that is counted. */
interface ManagementNotes {
  /** Undefined if the request reached no endpoint. */
  readonly operation?: string;
  readonly actor?: string;
}

/** The metrics of each request. Counting is plain addition: no label is hashed. */
export class RequestMetrics {
  readonly total = new ArrayCounter('tollgate_requests_total', 'Decided requests by how they ended.', {
    route: ROUTES,
    outcome: OUTCOMES,
    method: METHODS,
    status_class: STATUS_CLASSES,
  });
  readonly duration = new OutcomeHistogram('tollgate_request_duration_seconds', {
    help: 'Seconds from the start of a proxied request to the end of its response.',
    bounds: DURATION_BOUNDS,
  });
  readonly overhead = new OutcomeHistogram('tollgate_gateway_overhead_seconds', {
    help: 'Seconds of a proxied request that the gateway itself took: all but the wait for the backend.',
    bounds: OVERHEAD_BOUNDS,
  });

  readonly decision = new OutcomeHistogram('tollgate_authorize_duration_seconds', {
    help: 'Seconds from the start of a request that is only decided to the end of its response.',
    bounds: OVERHEAD_BOUNDS,
  });

  /** The decisions of the limits about these requests. No label has a limit's id: administrators can create any number of limits. */
  readonly limits = new ArrayCounter(
    'tollgate_limits_total',
    'Limits of plans that requests were checked against: allowed, or limited, which rejected the request or in shadow mode would have.',
    { outcome: LIMIT_OUTCOMES, mode: MODES },
  );

  readonly management: ArrayCounter<'operation' | 'outcome'>;
  readonly #operations: readonly string[];

  /** `operations` are the operation ids of the management endpoints. */
  constructor(operations: readonly string[]) {
    this.#operations = [...operations, NO_OPERATION];
    this.management = new ArrayCounter(
      'tollgate_management_requests_total',
      'Management requests by endpoint (the operationId of the OpenAPI document) and how they ended.',
      { operation: this.#operations, outcome: MANAGEMENT_OUTCOMES },
    );
  }

  /** Called when the response to a management or a self-service request has ended. */
  managed({ operation, actor }: ManagementNotes, status: number): void {
    const outcome = MANAGEMENT_OUTCOMES.indexOf(managementOutcomeOf(status, actor));
    this.management.add([this.#operations.indexOf(operation ?? NO_OPERATION), outcome]);
  }

  /** Called when a request at the port of management was rejected for its head. A 501 or 505 is no failure of the gateway either. */
  rejectedManagement(): void {
    const outcome = MANAGEMENT_OUTCOMES.indexOf('invalid_request');
    this.management.add([this.#operations.indexOf(NO_OPERATION), outcome]);
  }

  /** Called when the response to a decided request has ended. The histograms have only those of the backend's route. */
  observe(
    outcome: Outcome,
    { method, status, durationMs, gatewayMs }: RequestSample,
    route: Route = 'backend',
  ): void {
    const position = OUTCOMES.indexOf(outcome);
    const known = METHODS.indexOf(method as (typeof METHODS)[number]);
    const isForwarded = route === 'backend';
    this.total.add([
      isForwarded ? 0 : ROUTES.indexOf(route),
      position,
      known < 0 ? OTHER_METHOD : known,
      statusClassOf(status),
    ]);
    if (!isForwarded) {
      this.decision.observe(durationMs / 1000, position);
      return;
    }
    this.duration.observe(durationMs / 1000, position);
    this.overhead.observe(gatewayMs / 1000, position);
  }

  /** Called when a request with a decision has ended. A shadow limit is counted only if the request was allowed. */
  decided({ kind, windows = [] }: ObservedDecision): void {
    for (const { isExceeded, limit } of windows) {
      const isShadow = limit.mode === 'shadow';
      if (kind === 'allowed' || (isExceeded && !isShadow))
        this.limits.add([isExceeded ? 1 : 0, isShadow ? 1 : 0]);
    }
  }

  /** Called when a request was rejected before the first step: its method is not reliable, and it has no duration. */
  rejected(outcome: Outcome, status: number, route: Route = 'backend'): void {
    this.total.add([ROUTES.indexOf(route), OUTCOMES.indexOf(outcome), OTHER_METHOD, statusClassOf(status)]);
  }
}

/** The interface that prom-client's registry needs of a metric. */
interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

interface Scrape {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'histogram';
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
  readonly type = 'counter';
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
    return Promise.resolve({ name: this.name, help: this.#help, type: this.type, values, aggregator: 'sum' });
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

/** Help text and buckets of a histogram. */
interface HistogramOptions {
  readonly help: string;
  /** Upper bounds of the buckets, ascending. Seconds. */
  readonly bounds: readonly number[];
}

/**
 * A histogram for each outcome. An observation costs a short linear search and three additions; cumulative
 * counts are made when it is scraped. Values and bounds are seconds.
 */
class OutcomeHistogram {
  readonly name: string;
  readonly type = 'histogram';
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  readonly #sums: Float64Array;

  constructor(name: string, { help, bounds }: HistogramOptions) {
    this.name = name;
    this.#help = help;
    this.#bounds = bounds;
    this.#counts = new Float64Array(OUTCOMES.length * (bounds.length + 1));
    this.#sums = new Float64Array(OUTCOMES.length);
  }

  /** Counts one value, in seconds, under the outcome at `position`. */
  observe(seconds: number, position: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket++;
    const index = position * (bounds.length + 1) + bucket;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#sums[position] = (this.#sums[position] ?? 0) + seconds;
  }

  get(): Promise<Scrape> {
    const values = OUTCOMES.flatMap((outcome, position) => this.#samplesOf(outcome, position));
    return Promise.resolve({
      name: this.name,
      help: this.#help,
      type: this.type,
      values,
      aggregator: 'sum',
    });
  }

  #samplesOf(outcome: Outcome, position: number): readonly Sample[] {
    const labels = { outcome };
    const offset = position * (this.#bounds.length + 1);
    let seen = 0;
    const buckets = [...this.#bounds, '+Inf'].map((bound, bucket) => {
      seen += this.#counts[offset + bucket] ?? 0;
      return { metricName: `${this.name}_bucket`, labels: { le: bound, ...labels }, value: seen };
    });
    if (seen === 0) return [];
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: this.#sums[position] ?? 0 },
      { metricName: `${this.name}_count`, labels, value: seen },
    ];
  }
}
