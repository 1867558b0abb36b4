import type { IncomingMessage } from 'node:http';
import {
  type Attributes,
  type Context,
  DiagLogLevel,
  defaultTextMapGetter,
  defaultTextMapSetter,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  defaultResource,
  detectResources,
  envDetector,
  hostDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { LogThrottle } from '../platform/log-throttle.ts';
import { withinDeadline } from '../platform/within-deadline.ts';
import type { Route } from './outcomes.ts';
import type { RequestTrace, RequestTracing, TracedEnd, TracingOptions, TracingSettings } from './tracing.ts';

/** The methods that the semantic conventions name. Others become `_OTHER`, to bound the number of span names. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const OTHER_METHOD = '_OTHER';
/** The longest that a stop waits for the collector. Usage is written only after it. Milliseconds. */
const LAST_SPANS_MS = 2000;

const propagator = new W3CTraceContextPropagator();

/** Traces with OpenTelemetry's SDK: batches over OTLP/HTTP, with the attributes of the semantic conventions for HTTP. */
export class OpenTelemetryTracing implements RequestTracing {
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #options: TracingOptions;
  readonly #complain: () => void;

  private constructor(provider: TracerProvider, options: TracingOptions, complain: () => void) {
    this.#provider = provider;
    this.#tracer = provider.getTracer('tollgate', options.version);
    this.#options = options;
    this.#complain = complain;
  }

  static async start(options: TracingOptions): Promise<OpenTelemetryTracing> {
    const complain = complainTo(options);
    const resource = defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'tollgate', 'service.version': options.version }))
      .merge(detectResources({ detectors: [hostDetector, envDetector] }));
    const exporter = await exporterOf(options);
    const provider = new TracerProvider({
      resource,
      sampler: samplerOf(options),
      spanProcessors: [new BatchSpanProcessor({ exporter, ...options.batches })],
    });
    return new OpenTelemetryTracing(provider, options, complain);
  }

  begin(req: IncomingMessage, startedAtMs: number, route: Route = 'backend'): RequestTrace {
    const parent = propagator.extract(ROOT_CONTEXT, req.headers, defaultTextMapGetter) ?? ROOT_CONTEXT;
    return new Trace(this.#tracer, parent, { req, startedAtMs, route, options: this.#options });
  }

  async stop(): Promise<void> {
    const late = () => new Error(`no response of the collector after ${LAST_SPANS_MS} ms`);
    try {
      await withinDeadline(this.#provider.shutdown(), LAST_SPANS_MS, late);
    } catch {
      // The error is not logged: it may contain the collector's whole response.
      this.#complain();
    }
  }
}

interface TraceBegin {
  readonly req: IncomingMessage;
  readonly startedAtMs: number;
  readonly route: Route;
  readonly options: TracingOptions;
}

class Trace implements RequestTrace {
  readonly traceId: string;
  readonly #tracer: Tracer;
  readonly #options: TracingOptions;
  readonly #name: string;
  readonly #attributes: Attributes;
  readonly #context: Context;
  readonly #server: Span;
  #client: Span | undefined;

  constructor(tracer: Tracer, parent: Context, { req, startedAtMs, route, options }: TraceBegin) {
    const method = METHODS.has(req.method ?? '') ? (req.method ?? '') : OTHER_METHOD;
    this.#tracer = tracer;
    this.#options = options;
    this.#name = method === OTHER_METHOD ? 'HTTP' : method;
    this.#attributes = { 'http.request.method': method };
    this.#server = tracer.startSpan(
      this.#name,
      {
        kind: SpanKind.SERVER,
        startTime: startedAtMs,
        attributes: {
          ...this.#attributes,
          'network.protocol.version': req.httpVersion,
          'tollgate.route': route,
        },
      },
      parent,
    );
    this.#context = trace.setSpan(parent, this.#server);
    this.traceId = this.#server.spanContext().traceId;
  }

  forward(fields: string[]): void {
    const { backendUrl } = this.#options;
    // A request without a backend is not forwarded.
    if (backendUrl === null) return;
    const { hostname, port, protocol } = backendUrl;
    this.#client = this.#tracer.startSpan(
      this.#name,
      {
        kind: SpanKind.CLIENT,
        attributes: {
          ...this.#attributes,
          'server.address': hostname,
          'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
        },
      },
      this.#context,
    );
    const carrier: Record<string, string> = {};
    propagator.inject(trace.setSpan(this.#context, this.#client), carrier, defaultTextMapSetter);
    for (const name in carrier) fields.push(name, carrier[name] ?? '');
  }

  end({ requestId, path, status, outcome, errorCode, keyId, backendEndedAtMs }: TracedEnd): void {
    if (!this.#server.isRecording()) return;
    const response = status === 0 ? {} : { 'http.response.status_code': status };
    const failure =
      outcome === 'forwarded' ? (status >= 500 ? String(status) : undefined) : (errorCode ?? outcome);
    const error = failure === undefined ? {} : { 'error.type': failure };
    const client = this.#client;
    if (client !== undefined) {
      // The status of the gateway's own error is not the backend's.
      client.setAttributes({ ...(outcome === 'forwarded' ? response : {}), ...error });
      if (failure !== undefined || status >= 400) client.setStatus({ code: SpanStatusCode.ERROR });
      client.end(backendEndedAtMs ?? undefined);
    }
    this.#server.setAttributes({
      ...response,
      ...(status >= 500 || status === 0 ? error : {}),
      'url.path': this.#options.mask(path),
      'url.scheme': 'http',
      'tollgate.request.id': requestId,
      'tollgate.outcome': outcome,
      ...(keyId === undefined ? {} : { 'tollgate.key.id': keyId }),
    });
    if (status >= 500 || status === 0) this.#server.setStatus({ code: SpanStatusCode.ERROR });
    this.#server.end();
  }
}

function samplerOf({ sampler, isParentBased, ratio }: TracingSettings): Sampler {
  const root =
    sampler === 'always_on'
      ? new AlwaysOnSampler()
      : sampler === 'always_off'
        ? new AlwaysOffSampler()
        : new TraceIdRatioBasedSampler(ratio);
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}

/** The exporter. It reads endpoint, headers, certificates and compression from `OTEL_EXPORTER_OTLP_…` itself. */
async function exporterOf({ protocol }: TracingSettings): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter();
}

/**
 * Logs from time to time that traces are lost: when the library reports an error or a loss, and when the returned function is called. The
 * library's messages are not logged: they may contain an address or a header.
 */
function complainTo({ log, clock }: TracingOptions): () => void {
  const throttle = new LogThrottle(clock);
  const complain = (): void => {
    if (throttle.note() > 0) log.warn({ event: 'traces_lost' }, 'traces can not be delivered');
  };
  const ignore = (): void => {};
  const warn = (message: string, details?: unknown): void => {
    if (reportsLoss(message, details)) complain();
  };
  diag.setLogger(
    { error: complain, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return complain;
}

/**
 * Whether a warning of the library says that spans were lost: the queue was full (said with the next span that it takes), or the collector
 * rejected some. A collector may also send a partial success without rejected spans, as a hint.
 */
function reportsLoss(message: string, details: unknown): boolean {
  if (message.startsWith('Received Partial Success')) return /"rejectedSpans":"?[1-9]/.test(String(details));
  return /^Dropped \d+ spans/.test(message);
}
