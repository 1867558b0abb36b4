import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { listenOnLoopback } from './listen-on-loopback.ts';

/** A span as it was received, what the tests look at. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 2 = server, 3 = client. */
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** A collector of traces that takes OTLP over HTTP. */
export interface OtlpReceiver {
  readonly url: string;
  /** Media types of the bodies received. */
  readonly types: ReadonlySet<string>;
  /** What came as JSON, in order. */
  readonly spans: readonly ReceivedSpan[];
  /** Attributes of the resource that was last named. */
  readonly resource: Readonly<Record<string, unknown>>;
  /** Every body, as text. */
  readonly received: string;
  stop(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & { attributes: readonly Attribute[] })[];
    }[];
  }[];
}

/** Starts a collector on a loopback port. It calls `respond` once it has read a request, and accepts all spans by default. */
export async function startOtlpReceiver(respond: RequestListener = accept): Promise<OtlpReceiver> {
  const state = {
    types: new Set<string>(),
    spans: [] as ReceivedSpan[],
    resource: {} as Readonly<Record<string, unknown>>,
    received: '',
  };
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('latin1');
    const type = req.headers['content-type'] ?? '';
    state.types.add(type);
    state.received += body;
    if (type === 'application/json') {
      for (const { resource, scopeSpans } of (JSON.parse(body) as Export).resourceSpans) {
        state.resource = values(resource.attributes);
        const spans = scopeSpans.flatMap((scope) => scope.spans);
        state.spans.push(...spans.map((span) => ({ ...span, attributes: values(span.attributes) })));
      }
    }
    respond(req, res);
  });
  const port = await listenOnLoopback(server);
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  });
}

const accept: RequestListener = ({ url, headers }, res) => {
  res.writeHead(url === '/v1/traces' ? 200 : 404, { 'content-type': headers['content-type'] ?? '' }).end();
};

function values(attributes: readonly Attribute[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
