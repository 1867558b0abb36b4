import type { IncomingMessage } from 'node:http';
import type { Platform } from '../platform/platform.ts';
import type { Outcome, Route } from './outcomes.ts';

/** How traces are sampled, encoded and sent, from the standard `OTEL_*` variables. The exporter reads the endpoint itself. */
export interface TracingSettings {
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly sampler: 'always_on' | 'always_off' | 'traceidratio';
  /** Whether the sampling decision in a request's `traceparent` takes precedence over the sampler's. */
  readonly isParentBased: boolean;
  /** From 0 to 1, for `traceidratio`. */
  readonly ratio: number;
  /** The batches of spans; durations in milliseconds. Missing values have the defaults of OpenTelemetry's specification. */
  readonly batches: {
    readonly scheduledDelayMillis?: number;
    readonly exportTimeoutMillis?: number;
    readonly maxQueueSize?: number;
    readonly maxExportBatchSize?: number;
  };
}

/** What the spans of an ended request contain. */
export interface TracedEnd {
  readonly requestId: string;
  readonly path: string;
  /** 0 if the client disconnected before there was a response. */
  readonly status: number;
  readonly outcome: Outcome;
  /** The code of the error that the gateway sent, or for which it cut the response to a slow client; undefined if there was none. */
  readonly errorCode: string | undefined;
  readonly keyId: string | undefined;
  /** The end of the backend's response, by the monotonic clock. Null if it did not end by itself. */
  readonly backendEndedAtMs: number | null;
}

/** The spans of one request: a server span, and within it a client span for the request to the backend. */
export interface RequestTrace {
  readonly traceId: string;
  /** Called once, when the request is first sent to the backend: begins the client span. Adds its headers to a flat list. */
  forward(fields: string[]): void;
  /** Called once, when the request's response has ended. */
  end(end: TracedEnd): void;
}

/** Traces requests. Only `stop` waits, and no method throws. Traces that can't be delivered are dropped. */
export interface RequestTracing {
  /**
   * Called when a request comes in, at `startedAtMs` of the monotonic clock. Continues its `traceparent`, or starts a trace. `route` is
   * `backend` by default.
   */
  begin(req: IncomingMessage, startedAtMs: number, route?: Route): RequestTrace;
  /** Sends the remaining spans. Resolves within 2 s, also if they could not be delivered. */
  stop(): Promise<void>;
}

/** What tracing is built from. */
export interface TracingOptions extends TracingSettings, Pick<Platform, 'log' | 'clock'> {
  /** Null: no request is forwarded. */
  readonly backendUrl: URL | null;
  readonly version: string;
  /** Masks secrets in a path. */
  readonly mask: (path: string) => string;
}
