import type { IncomingMessage } from 'node:http';
import type { Logger } from '../platform/logger.ts';
import type { Outcome } from './outcomes.ts';

/** How traces are sampled, encoded and sent, from the standard `OTEL_*` variables; where to, the exporter reads itself. */
export interface TracingSettings {
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly sampler: 'always_on' | 'always_off' | 'traceidratio';
  /** A decision that came with the request goes before the sampler's. */
  readonly isParentBased: boolean;
  /** 0 … 1, for `traceidratio`. */
  readonly ratio: number;
  /** Of the batches that spans are sent in, durations in milliseconds. What is missing has the default of OpenTelemetry's specification. */
  readonly batches: {
    readonly scheduledDelayMillis?: number;
    readonly exportTimeoutMillis?: number;
    readonly maxQueueSize?: number;
    readonly maxExportBatchSize?: number;
  };
}

/** What spans say of a request that is over. */
export interface TracedEnd {
  readonly requestId: string;
  readonly path: string;
  /** 0 when the client left before there was a response. */
  readonly status: number;
  readonly outcome: Outcome;
  /** Of the error that the gateway sent; undefined when it sent none. */
  readonly errorCode: string | undefined;
  readonly keyId: string | undefined;
  /** By the monotonic clock; null when the backend's part never ended by itself. */
  readonly backendEndedAtMs: number | null;
}

/** One request's place in a trace: a server span, and within it a client span while the request is with the backend. */
export interface RequestTrace {
  readonly traceId: string;
  /** The request goes to the backend: adds its `traceparent` and `tracestate` to a flat list of fields. */
  forward(fields: string[]): void;
  /** The request's response is over. To be called once. */
  end(end: TracedEnd): void;
}

/** Traces requests. None of its methods waits or throws; what can not be delivered is dropped. */
export interface RequestTracing {
  /** A request came in, at `startedAtMs` of the monotonic clock: continues its `traceparent`, or starts a trace. */
  begin(req: IncomingMessage, startedAtMs: number): RequestTrace;
  /** Sends what is left. */
  stop(): Promise<void>;
}

/** What tracing needs to know of the gateway. */
export interface TracingOptions extends TracingSettings {
  readonly backendUrl: URL;
  readonly version: string;
  readonly log: Logger;
  /** Makes a path fit to be written down. */
  readonly mask: (path: string) => string;
}
