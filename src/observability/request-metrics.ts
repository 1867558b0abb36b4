import { ArrayCounter, ArrayHistogram } from './array-metrics.ts';
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

/**
 * Counts the decisions of plans' limits, with plain additions for each request. It has no limit ids as labels: administrators can create
 * any number of them.
 */
class LimitMetrics {
  readonly total = new ArrayCounter(
    'tollgate_limits_total',
    'Limits of plans that requests were checked against: allowed, or limited, which rejected the request or in shadow mode would have.',
    { outcome: LIMIT_OUTCOMES, mode: MODES },
  );

  /** Called when a request with a decision has ended. A shadow limit is counted only if the request was allowed. */
  observe({ kind, windows }: ObservedDecision): void {
    if (windows === undefined) return;
    for (const { isExceeded, limit } of windows) {
      const isShadow = limit.mode === 'shadow';
      if (kind === 'allowed' || (isExceeded && !isShadow))
        this.total.add([isExceeded ? 1 : 0, isShadow ? 1 : 0]);
    }
  }
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'] as const;
const OTHER_METHOD = METHODS.length - 1;
const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const;

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
  readonly duration = new ArrayHistogram('tollgate_request_duration_seconds', {
    help: 'Seconds from the start of a proxied request to the end of its response.',
    bounds: DURATION_BOUNDS,
    label: { name: 'outcome', values: OUTCOMES },
  });
  readonly overhead = new ArrayHistogram('tollgate_gateway_overhead_seconds', {
    help: 'Seconds of a proxied request that the gateway itself took: all but the wait for the backend.',
    bounds: OVERHEAD_BOUNDS,
    label: { name: 'outcome', values: OUTCOMES },
  });

  readonly decision = new ArrayHistogram('tollgate_authorize_duration_seconds', {
    help: 'Seconds from the start of a request that is only decided to the end of its response.',
    bounds: OVERHEAD_BOUNDS,
    label: { name: 'outcome', values: OUTCOMES },
  });

  /** The decisions of the limits about these requests. */
  readonly limits = new LimitMetrics();

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
      Math.floor(status / 100),
    ]);
    if (!isForwarded) {
      this.decision.observe(durationMs / 1000, position);
      return;
    }
    this.duration.observe(durationMs / 1000, position);
    this.overhead.observe(gatewayMs / 1000, position);
  }

  /** Called when a request was rejected because of its head. Its method is not reliable, and it has no duration. */
  rejected(status: number, route: Route = 'backend'): void {
    this.total.add([
      ROUTES.indexOf(route),
      OUTCOMES.indexOf('invalid_request'),
      OTHER_METHOD,
      Math.floor(status / 100),
    ]);
  }
}
