import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ask, original } from '../authorize/support/ask.ts';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { MAIN, startGateway } from '../support/gateway.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { until } from '../support/until.ts';

const SERVER = 2;
const CLIENT = 3;
const ERROR = 2;
const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';

let receiver: OtlpReceiver;
let fleet: Fleet;
let url: string;
let key: { readonly id: string; readonly secret: string };
/** The last `traceparent` and `tracestate` that the backend got. */
let atBackend: readonly unknown[] = [];
/** The `traceparent` of each attempt of a request for /again. The first attempt fails. */
let attempts: unknown[] = [];
/** Responds to the request for /held. */
let held: (() => void) | undefined;

beforeAll(async () => {
  receiver = await startOtlpReceiver();
  fleet = await startFleet(
    1,
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      AUTHORIZE_PORT: '0',
    },
    (req, res) => {
      atBackend = [req.headers.traceparent, req.headers.tracestate];
      if (req.url === '/again') attempts.push(req.headers.traceparent);
      if (req.url === '/held') held = () => res.end();
      else if (req.url === '/reset' || (req.url === '/again' && attempts.length === 1)) req.socket.destroy();
      else res.writeHead(req.url === '/missing' ? 404 : 200).end('ok');
    },
  );
  url = fleet.replicas[0]?.url ?? '';
  key = await fleet.admin.makeKey('traced');
});
afterAll(async () => {
  await fleet?.stop();
  await receiver?.stop();
});

async function send(path: string, fields: Readonly<Record<string, string>> = {}): Promise<Response> {
  const response = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${key.secret}`, cookie: 'private-cookie', ...fields },
  });
  await response.arrayBuffer();
  return response;
}

interface Spans {
  readonly server: ReceivedSpan;
  readonly client?: ReceivedSpan;
}

/** The spans of the request with this id: the server's, and the client's within it. */
function spansOf(requestId: string | null): Promise<Spans> {
  return spansWith('tollgate.request.id', requestId);
}

async function spansWith(attribute: string, value: string | null): Promise<Spans> {
  const find = () => receiver.spans.find(({ attributes }) => attributes[attribute] === value);
  await until(() => find() !== undefined);
  const server = find();
  if (server === undefined) throw new Error('no span');
  const client = receiver.spans.find(({ parentSpanId }) => parentSpanId === server.spanId);
  return { server, ...(client !== undefined && { client }) };
}

describe('with an endpoint of OpenTelemetry set, a request', () => {
  it('is a server span in the trace of its caller, and a client span for the backend', async () => {
    const response = await send('/path?token=private-query', {
      traceparent: `00-${TRACE_ID}-${CALLER}-01`,
      tracestate: 'rojo=00f067aa0ba902b7',
    });
    const { server, client } = await spansOf(response.headers.get('x-request-id'));
    expect(server).toMatchObject({ traceId: TRACE_ID, parentSpanId: CALLER, name: 'GET', kind: SERVER });
    expect(server.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'url.path': '/path',
      'tollgate.key.id': key.id,
      'tollgate.outcome': 'forwarded',
    });
    expect(client).toMatchObject({ traceId: TRACE_ID, parentSpanId: server.spanId, kind: CLIENT });
    expect(client?.attributes).toMatchObject({
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(fleet.environment.BACKEND_URL ?? '').port),
    });
    expect(atBackend).toEqual([`00-${TRACE_ID}-${client?.spanId}-01`, 'rojo=00f067aa0ba902b7']);
    const ends = [server, client]
      .flatMap((span) => [span?.startTimeUnixNano ?? 0, span?.endTimeUnixNano ?? 0])
      .map(BigInt);
    const [began = 0n, ended = 0n, clientBegan = 0n, clientEnded = 0n] = ends;
    // A span reads the time of day in whole milliseconds.
    const slack = 1_000_000n;
    expect([began <= clientBegan, clientBegan < clientEnded, clientEnded < ended + slack]).toEqual([
      true,
      true,
      true,
    ]);
    expect(receiver.resource).toMatchObject({
      'service.name': 'tollgate',
      'deployment.environment.name': 'test',
    });
  });

  it('that is only decided has the route "authorize", and no client span', async () => {
    const authorizeUrl = fleet.replicas[0]?.authorizeUrl ?? '';
    const { headers } = await ask(authorizeUrl, '/authorize/original', { headers: original(key.secret) });
    const { server, client } = await spansOf(String(headers['x-request-id']));
    expect(server.attributes).toMatchObject({
      ...{ 'tollgate.route': 'authorize', 'url.path': '/v1/orders', 'tollgate.outcome': 'allowed' },
    });
    expect(client).toBeUndefined();
  });

  it('without a caller that traces begins a trace, which its log line names', async () => {
    const response = await send('/fine');
    const requestId = response.headers.get('x-request-id');
    const { server, client } = await spansOf(requestId);
    expect(server.parentSpanId ?? '').toBe('');
    expect(atBackend).toEqual([`00-${server.traceId}-${client?.spanId}-01`, undefined]);
    const line = () =>
      fleet.replicas[0]
        ?.output()
        .split('\n')
        .find((each) => each.includes(`"${requestId}"`));
    await until(() => line() !== undefined);
    expect(JSON.parse(line() ?? '')).toMatchObject({ traceId: server.traceId });
  });

  it('is not recorded where the caller says so, but stays in its trace', async () => {
    await send('/fine', { traceparent: `00-${TRACE_ID}-${CALLER}-00` });
    expect(atBackend[0]).toMatch(new RegExp(`^00-${TRACE_ID}-[0-9a-f]{16}-00$`));
    expect(atBackend[0]).not.toContain(CALLER);
  });

  it('that fails says why; a rejection and a 404 are no failures of the server', async () => {
    const failed = await spansOf((await send('/reset')).headers.get('x-request-id'));
    expect(failed.server).toMatchObject({ status: { code: ERROR } });
    expect(failed.server.attributes).toMatchObject({
      'http.response.status_code': 502,
      'error.type': 'bad_gateway',
    });
    expect(failed.client).toMatchObject({ status: { code: ERROR } });
    const missing = await spansOf((await send('/missing')).headers.get('x-request-id'));
    expect(missing.server.status.code ?? 0).toBe(0);
    const rejected = await spansOf(
      (await send('/fine', { authorization: 'Bearer no' })).headers.get('x-request-id'),
    );
    expect(rejected.server.attributes).toMatchObject({ 'tollgate.outcome': 'unauthenticated' });
    expect(rejected.client).toBeUndefined();
  });

  it('has a client span only from when it has a connection, and none without', async () => {
    const gateway = await startGateway({ ...fleet.environment, BACKEND_CONNECTIONS: '1' });
    const headers = { authorization: `Bearer ${key.secret}` };
    const queued = async (count: number) =>
      (await (await fetch(`${gateway.opsUrl}/metrics`)).text()).includes(
        `tollgate_backend_requests_queued ${count}\n`,
      );
    const first = fetch(`${gateway.url}/held`, { headers });
    await until(() => held !== undefined);
    const leave = new AbortController();
    const left = fetch(`${gateway.url}/left`, { headers, signal: leave.signal }).catch(() => 'left');
    const second = fetch(`${gateway.url}/queued`, { headers });
    await until(() => queued(2));
    leave.abort();
    expect(await left).toBe('left');
    await until(() => queued(1));
    const releasedAtMs = Date.now();
    held?.();
    await Promise.all([first, second].map(async (response) => (await response).arrayBuffer()));
    const { client } = await spansWith('url.path', '/queued');
    expect(BigInt(client?.startTimeUnixNano ?? 0) / 1_000_000n).toBeGreaterThanOrEqual(BigInt(releasedAtMs));
    expect((await spansWith('url.path', '/left')).client).toBeUndefined();
    await gateway.stop();
  });

  it('that is sent to the backend twice has one client span', async () => {
    let response = await send('/fine');
    // It is sent again only if its connection was used before.
    await until(async () => {
      attempts = [];
      await send('/fine');
      response = await send('/again');
      return response.status === 200;
    });
    const { server, client } = await spansOf(response.headers.get('x-request-id'));
    const [traceparent] = attempts;
    expect(attempts).toEqual([traceparent, traceparent]);
    expect(traceparent).toBe(`00-${server.traceId}-${client?.spanId}-01`);
  });

  it('leaves no secret in a trace', async () => {
    const response = await send(`/in-the-path/${key.secret}?also=${key.secret}`);
    const { server } = await spansOf(response.headers.get('x-request-id'));
    expect(server.attributes['url.path']).toBe('/in-the-path/***');
    for (const text of [key.secret, 'private-query', 'private-cookie']) {
      expect(receiver.received).not.toContain(text);
    }
  });
});

/** Writes the URL of each module that a process loads. */
const NAME_LOADED_MODULES = `
  import { registerHooks } from 'node:module';
  registerHooks({ load: (url, context, next) => { process._rawDebug(url); return next(url, context); } });
`;

describe('traces', () => {
  it('are sent as protobuf by default, and the last of them at the stop', async () => {
    const own = await startOtlpReceiver();
    const gateway = await startGateway({
      ...fleet.environment,
      OTEL_EXPORTER_OTLP_PROTOCOL: '',
      OTEL_EXPORTER_OTLP_ENDPOINT: own.url,
      OTEL_BSP_SCHEDULE_DELAY: '60000',
    });
    expect(await statusOf(`${gateway.url}/at-the-end`, key.secret)).toBe(200);
    expect(own.types.size).toBe(0);
    expect(await gateway.stop()).toBe(0);
    expect([...own.types]).toEqual(['application/x-protobuf']);
    expect(own.received).toContain('/at-the-end');
    await own.stop();
  });

  it('that can not be delivered cost no request, and are logged without an address', async () => {
    const gateway = await startGateway({
      ...fleet.environment,
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:private-password@127.0.0.1:1',
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=private-header',
      OTEL_EXPORTER_OTLP_TIMEOUT: '300',
    });
    expect(await statusOf(gateway.url, key.secret)).toBe(200);
    await until(() => gateway.output().includes('traces can not be delivered'));
    expect(await gateway.stop()).toBe(0);
    expect(gateway.output()).not.toContain('private');
  });

  it.each<[string, RequestListener | null]>([
    ['is away', null],
    ['does not respond', () => {}],
    ['rejects them', (req, res) => res.writeHead(401).end(`you sent ${req.headers['api-key']}`)],
  ])('are dropped at the stop, which is clean, where the collector %s', async (_name, respond) => {
    const collector = respond && (await startOtlpReceiver(respond));
    const gateway = await startGateway({
      ...fleet.environment,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector?.url ?? 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=private-header',
      OTEL_BSP_SCHEDULE_DELAY: '60000',
    });
    expect(await statusOf(gateway.url, key.secret)).toBe(200);
    const code = await gateway.stop();
    await collector?.stop();
    expect(code).toBe(0);
    expect(gateway.output()).toContain('traces can not be delivered');
    expect(gateway.output()).not.toContain('private');
  });

  it('that find the queue full are lost, which is logged', async () => {
    const held: (() => void)[] = [];
    let isSlow = true;
    const slow = await startOtlpReceiver((_req, res) => {
      if (isSlow) held.push(() => res.end());
      else res.end();
    });
    const gateway = await startGateway({
      ...fleet.environment,
      OTEL_EXPORTER_OTLP_ENDPOINT: slow.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: '60000',
      OTEL_BSP_MAX_QUEUE_SIZE: '1',
    });
    // Of the two spans of the first request one is being sent and one is in the queue.
    await statusOf(gateway.url, key.secret);
    await until(() => held.length === 1);
    await statusOf(gateway.url, key.secret);
    isSlow = false;
    for (const respond of held) respond();
    await until(async () => {
      await statusOf(gateway.url, key.secret);
      return gateway.output().includes('traces can not be delivered');
    });
    await gateway.stop();
    await slow.stop();
  });

  it.each([
    ['some spans are rejected', '2', true],
    ['no span is rejected', '0', false],
  ])(
    'are logged as lost only where some were: the collector says that %s',
    async (_name, rejectedSpans, isLogged) => {
      const collector = await startOtlpReceiver((_req, res) => {
        res.setHeader('content-type', 'application/json');
        res.end(JSON.stringify({ partialSuccess: { rejectedSpans, errorMessage: 'private-header' } }));
      });
      const gateway = await startGateway({
        ...fleet.environment,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: '60000',
      });
      await statusOf(gateway.url, key.secret);
      expect(await gateway.stop()).toBe(0);
      await collector.stop();
      expect(collector.received).not.toBe('');
      expect(gateway.output().includes('traces can not be delivered')).toBe(isLogged);
      expect(gateway.output()).not.toContain('private');
    },
  );

  it('that are off load nothing of OpenTelemetry', async () => {
    const gateway = await startGateway(
      {
        ...fleet.environment,
        OTEL_SDK_DISABLED: 'true',
        NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(NAME_LOADED_MODULES)}`,
      },
      { main: MAIN },
    );
    await gateway.stop();
    // What the process wrote may be read after it has ended.
    await until(() => gateway.output().includes('app/wiring/wire-proxy.ts'));
    // prom-client loads the interface, which does nothing by itself.
    expect(gateway.output()).not.toMatch(/open-telemetry-tracing\.ts|@opentelemetry\/(?!api\/)/);
  });
});
