import { describe, expect, it } from '@jest/globals';
import { RequestIds } from '../../src/http/request-id.ts';
import { withRequestId } from '../../src/http/with-request-id.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { testRequestIds } from '../support/request-ids.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const OURS = '[A-Za-z0-9_-]{16}';
const UPGRADE = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket';
const POST = 'POST /rate-limit HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine';
const CHUNKED = 'Transfer-Encoding: chunked';

/** The request ids in a text, in order. */
function idsIn(text: string): readonly string[] {
  return [...text.matchAll(/^x-request-id: (.*)$/gim)].map(([, id = '']) => id.trim());
}

describe('X-Request-Id', () => {
  const stage = withGateway({
    requestIds: new RequestIds(systemRandom, (text) => text.includes('secret')),
    corsAllowedOrigins: ['https://app.example.com'],
  });

  async function exchange(...lines: readonly string[]): Promise<{ backend: string; client: string }> {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close', ...lines));
    return { client: await client.ended(), backend: stage.backend.received };
  }

  it('is made for each request, and sent to the client, the backend and the log', async () => {
    const { backend, client } = await exchange();
    const [id = ''] = idsIn(client);
    expect(id).toMatch(new RegExp(`^${OURS}$`));
    expect(idsIn(backend)).toEqual([id]);
    expect(stage.gateway.observed.map(({ requestId }) => requestId)).toEqual([id]);
  });

  it.each(['7', 'a'.repeat(128), '2f1c0a9e-5b0d-4c3e', 'Root=1-67891233-abcdef/+~._'])(
    "is the client's when it is fit to be repeated: %s",
    async (id) => {
      const { backend, client } = await exchange(`x-request-id: ${id}`);
      expect([...idsIn(client), ...idsIn(backend)]).toEqual([id, id]);
    },
  );

  it.each([
    ['with other characters', ['X-Request-Id: "quoted"']],
    ['that is empty', ['X-Request-Id: ']],
    ['that is too long', [`X-Request-Id: ${'a'.repeat(129)}`]],
    ['that is there twice', ['X-Request-Id: one', 'X-Request-Id: two']],
    ['that has a credential in it', ['X-Request-Id: my-secret-1']],
    ['that is not ASCII', ['X-Request-Id: \u00e4']],
  ])('of a client %s is replaced', async (_what, lines) => {
    const { backend, client } = await exchange(...lines);
    const [id = ''] = idsIn(client);
    expect(id).toMatch(new RegExp(`^${OURS}$`));
    expect(idsIn(backend)).toEqual([id]);
  });

  it("of the backend's response is replaced", async () => {
    stage.backend.respond('HTTP/1.1 200 OK\r\nx-request-ID: theirs\r\nContent-Length: 0\r\n\r\n');
    const client = await stage.gateway.send(
      stage.gateway.head('GET /', 'Connection: close', 'X-Request-Id: mine'),
    );
    expect(idsIn(await client.ended())).toEqual(['mine']);
  });

  it('is on responses of the gateway too: rejected, preflight, bad gateway', async () => {
    const { gateway, backend } = stage;
    const rejected = await gateway.send(
      'GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: rejected\r\nConnection: close\r\n\r\n',
    );
    expect(idsIn(await rejected.ended())).toEqual(['rejected']);
    const preflight = await gateway.send(
      'OPTIONS / HTTP/1.1\r\nHost: a\r\nX-Request-Id: preflight\r\nConnection: close\r\nOrigin: https://app.example.com\r\nAccess-Control-Request-Method: GET\r\n\r\n',
    );
    expect(idsIn(await preflight.ended())).toEqual(['preflight']);
    backend.respond('nonsense\r\n\r\n');
    const failed = await gateway.send(gateway.head('GET /', 'X-Request-Id: failed', 'Connection: close'));
    expect(idsIn(await failed.ended())).toEqual(['failed']);
  });

  it.each<readonly [string, string]>([
    ['400 for two Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nX-Request-Id: mine'],
    ['400 for an upgrade with a body', `${UPGRADE}\r\nContent-Length: 1\r\nX-Request-Id: mine`],
    ['401 for an upgrade without a key', `${UPGRADE}\r\nX-Request-Id: mine`],
    ['405 for TRACE', 'TRACE / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine'],
    ['405 for CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine'],
    ['414 for a long target', `GET /${'x'.repeat(9000)} HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine`],
    ['417 for an expectation', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nX-Request-Id: mine'],
    [
      '431 for many headers',
      `GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n${'a: b\r\n'.repeat(198)}a: b`,
    ],
    [
      '501 for a coding',
      'GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\nX-Request-Id: mine',
    ],
    ['508 for a loop', 'GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 tollgate\r\nX-Request-Id: mine'],
  ])('of the client is on a rejection before any routing: %s', async (name, head) => {
    const client = await stage.gateway.send(`${head}\r\n\r\n`);
    const response = await client.ended();
    expect(response).toMatch(new RegExp(`^HTTP/1.1 ${name.slice(0, 3)} `));
    expect(idsIn(response)).toEqual(['mine']);
  });

  it.each<readonly [number, string]>([
    [400, 'nonsense\r\n\r\n'],
    [431, `GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nA: ${'b'.repeat(17_000)}\r\n\r\n`],
    [505, 'GET / HTTP/3.0\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n'],
  ])('is a new one on a %i for what could not be read as a request', async (status, bytes) => {
    const client = await stage.gateway.send(bytes);
    const response = await client.ended();
    expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(idsIn(response)).toEqual([expect.stringMatching(new RegExp(`^${OURS}$`))]);
  });

  it('never repeats itself and does not count', () => {
    const ids = new RequestIds(systemRandom, () => false);
    const request = { headers: {} } as Parameters<RequestIds['idOf']>[0];
    const made = Array.from({ length: 1000 }, () => ids.idOf(request));
    expect(new Set(made).size).toBe(1000);
    for (const id of made) expect(id).toMatch(new RegExp(`^${OURS}$`));
    // Neighbours share a character in the same place by chance only.
    const alike = made.slice(1).filter((id, i) => id.slice(0, 4) === made[i]?.slice(0, 4));
    expect(alike.length).toBeLessThan(3);
  });
});

describe('X-Request-Id on the port of the management interface', () => {
  const stage = withGateway({
    timeouts: { headMs: 300, idleMs: 1500 },
    management: withRequestId(() => {}, {
      requestIds: testRequestIds(),
      clock: systemClock,
      onServed: () => {},
    }),
  });

  it.each<readonly [string, string, string]>([
    ['408 for half a head', 'GET /rate-limit HTTP/1.1\r\nHost: a\r\n', OURS],
    ['408 for half a body', `${POST}\r\nContent-Length: 5\r\n\r\nabc`, 'mine'],
    ['413 for chunk extensions', `${POST}\r\n${CHUNKED}\r\n\r\n1;${'a'.repeat(17_000)}`, 'mine'],
    ['400 for a chunk size', `${POST}\r\n${CHUNKED}\r\n\r\nzz\r\n`, 'mine'],
    [
      '404 for a path in disguise',
      'GET /%72ate-limit HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n',
      'mine',
    ],
    [
      '404 for an upgrade',
      'GET /rate-limit HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
      'mine',
    ],
  ])('is there for %s', async (name, bytes, id) => {
    const client = await stage.gateway.send(bytes);
    const response = await client.until((text) => text.endsWith('}'));
    expect(response).toMatch(new RegExp(`^HTTP/1.1 ${name.slice(0, 3)} `));
    expect(idsIn(response)).toEqual([expect.stringMatching(new RegExp(`^${id}$`))]);
  });
});

describe('traceparent and tracestate', () => {
  const stage = withGateway();

  it('go through as they are while traces are off', async () => {
    stage.backend.respond(OK);
    const lines = [
      'TraceParent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'tracestate: congo=t61rcWkgMzE,rojo=00f067aa0ba902b7',
    ];
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close', ...lines));
    await client.ended();
    for (const line of lines) expect(stage.backend.received).toContain(`\r\n${line}\r\n`);
  });
});
