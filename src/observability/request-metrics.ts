import { TalliedCounter, TalliedHistogram } from './tallied-metrics.ts';

/** How requests end, as the metrics tell them apart. */
export const REQUEST_RESULTS = [
  'admitted',
  'limited',
  'unauthenticated',
  'bad_request',
  'backend_error',
  'unavailable',
  'aborted',
] as const;
export type RequestResult = (typeof REQUEST_RESULTS)[number];

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'] as const;
const OTHER_METHOD = METHODS.length - 1;
const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

const DURATION_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const OVERHEAD_BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

/** What a request leaves in the metrics. */
export interface RequestSample {
  readonly method: string;
  /** 0 when the client left before there was an answer. */
  readonly status: number;
  readonly durationMs: number;
  /** Time in the gateway, without the backend. */
  readonly gatewayMs: number;
}

/** The metrics that each proxied request touches: plain additions, no label is looked up by hashing. */
export class RequestMetrics {
  readonly total = new TalliedCounter('tollgate_requests_total', 'Proxied requests by how they ended.', {
    outcome: REQUEST_RESULTS,
    method: METHODS,
    status_class: STATUS_CLASSES,
  });
  readonly duration = new TalliedHistogram(
    'tollgate_request_duration_seconds',
    'From the first byte of a proxied request to the end of its answer.',
    DURATION_BOUNDS,
    { name: 'outcome', values: REQUEST_RESULTS },
  );
  readonly overhead = new TalliedHistogram(
    'tollgate_gateway_overhead_seconds',
    'The part of a proxied request that the backend had nothing to do with.',
    OVERHEAD_BOUNDS,
    { name: 'outcome', values: REQUEST_RESULTS },
  );

  /** A proxied request's answer is over. */
  observe(result: RequestResult, { method, status, durationMs, gatewayMs }: RequestSample): void {
    const outcome = REQUEST_RESULTS.indexOf(result);
    const known = METHODS.indexOf(method as (typeof METHODS)[number]);
    this.total.add([outcome, known < 0 ? OTHER_METHOD : known, Math.floor(status / 100)]);
    this.duration.observe(durationMs / 1000, outcome);
    this.overhead.observe(gatewayMs / 1000, outcome);
  }

  /** A request was refused for its head: its method is nothing to go by, and its time is none. */
  refused(status: number): void {
    this.total.add([REQUEST_RESULTS.indexOf('bad_request'), OTHER_METHOD, Math.floor(status / 100)]);
  }
}
