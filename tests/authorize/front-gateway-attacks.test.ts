import { createServer } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import type { RunningGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import type { RunningProgram } from '../support/running-program.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { ask } from './support/ask.ts';
import { DECISION_FIELDS } from './support/decision-fields.ts';
import { GATEWAY_KINDS, startFrontGateway } from './support/documented-gateways.ts';
import { SwitchingBackend } from './support/switching-backend.ts';

let fleet: Fleet;
let backend: SwitchingBackend;
beforeAll(async () => {
  fleet = await startInProcessFleet(1, {
    ...{ AUTHORIZE_PORT: '0', BACKEND_URL: '', TRUSTED_PROXIES: '127.0.0.1' },
  });
  backend = await SwitchingBackend.start();
  await fleet.admin.makePlan('ample', 1000, 'day');
});
afterAll(async () => {
  backend?.stop();
  await fleet?.stop();
});

const authorizePort = (): number => Number(new URL(fleet.replicas[0]?.authorizeUrl ?? '').port);
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

/** A limit and an owner whose texts are as long as they may be. */
const LARGEST = 999_999_999_999_999;
const OWNER = '\u65e5'.repeat(128);

/** The request whose 200 has the longest fields. */
let longest: Readonly<Record<string, string>>;
beforeAll(async () => {
  const planId = 'p'.repeat(64);
  await fleet.admin.makePlan(planId, LARGEST, 'day');
  const additionalLimits = Array.from({ length: 7 }, (_, i) => ({
    ...{ limitId: String(i).padEnd(32, 'l'), limit: LARGEST, period: `${i + 2} days` },
  }));
  await fleet.admin.call('PATCH', `/rate-limit/${planId}`, { additionalLimits });
  const origin = `https://${'o'.repeat(60)}.${'o'.repeat(60)}.${'o'.repeat(60)}.example.com`;
  const secret = 's'.repeat(512);
  const made = { name: 'longest', externalId: OWNER, allowedOrigins: [origin], secret };
  const { body } = await fleet.admin.call('POST', '/consumer-api-key/create', made);
  await fleet.admin.bind(body.id, planId);
  // The secret is the previous one, so that the response says when it expires.
  await fleet.admin.call('POST', `/consumer-api-key/${body.id}/rotate`, { graceSeconds: 3600 });
  longest = { ...bearer(secret), origin, 'x-customer-id': 'c'.repeat(128), 'x-request-id': 'r'.repeat(128) };
});

/** What a consumer may send to pass for another one, or for another request. */
const FORGED = {
  'x-api-key': 'forged',
  ...Object.fromEntries(DECISION_FIELDS.map((name) => [name, 'forged'])),
  // Names of the same variables for backends that are modelled on CGI.
  ...Object.fromEntries(
    ['x_api_key', 'X.Api.Key', 'tollgate_plan', 'Tollgate.Plan'].map((name) => [name, 'forged']),
  ),
  'x-original-uri': '/free',
  'x-original-url': 'http://api.example.com/free',
  'x-original-method': 'GET',
  'x-forwarded-uri': '/free',
  'x-forwarded-method': 'GET',
  'x-envoy-auth-failure-mode-allowed': 'forged',
};

/** The forged fields that the backend got with its last request as they were sent. */
function forgedFields(): string[] {
  const { headers = {} } = backend.received.at(-1) ?? {};
  return Object.entries(FORGED)
    .filter(([name, value]) => headers[name.toLowerCase()] === value)
    .map(([name]) => name);
}

/** Only Envoy ever says this. */
const forgedBehind = (kind: string): string[] =>
  kind === 'Envoy' ? [] : ['x-envoy-auth-failure-mode-allowed'];

async function headOf(request: string, { port }: RunningProgram): Promise<string> {
  const peer = await RawPeer.connect(port);
  peer.send(request);
  const head = await peer.head();
  peer.destroy();
  return head;
}

/** Cookies of a browser, and those of them that a backend gets. */
const COOKIES: readonly (readonly [string, string])[] = [
  ['a=1; b="x=y"', 'a=1; b="x=y"'],
  ['a=1; __Host-tollgate=tgs_x; b=2', 'a=1; b=2'],
  ['__Host-tollgate=tgs_x; a=1; __Host-tollgate-sign-in=y', 'a=1'],
  ['a=1; __Host-tollgate-sign-in=y; __Host-tollgate=tgs_x', 'a=1'],
  ['__Host-tollgate=tgs_x; __Host-tollgate-sign-in=y; a=1', 'a=1'],
  ['__Host-tollgate=tgs_x; __Host-tollgate-sign-in=y', ''],
  ['__Host-tollgate=tgs_x', ''],
  [
    '__Host-tollgated=1; x__Host-tollgate=2; c=__Host-tollgate',
    '__Host-tollgated=1; x__Host-tollgate=2; c=__Host-tollgate',
  ],
  [
    `a=${'x'.repeat(3500)}; __Host-tollgate=tgs_x; b=${'y'.repeat(3500)}`,
    `a=${'x'.repeat(3500)}; b=${'y'.repeat(3500)}`,
  ],
];

async function expectOtherCookies(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  for (const [cookie, left] of COOKIES) {
    backend.received.length = 0;
    const { status } = await ask(url, '/', { headers: { ...headers, cookie } });
    const seen = backend.received.map((request) => request.headers.cookie ?? '');
    expect([cookie, status, seen]).toEqual([cookie, 200, [left]]);
  }
  backend.received.length = 0;
  const several = Array.from({ length: 4 }, (_, i) => ['Cookie', `__Host-tollgate=tgs_${i}`]).flat();
  expect((await ask(url, '/', { headers: [...Object.entries(headers).flat(), ...several] })).status).toBe(
    200,
  );
  expect(backend.received[0]?.headers.cookie ?? '').not.toContain('tgs_');
}

it('the longest response of Tollgate has less than 8 kB', async () => {
  const { status, headers } = await ask(fleet.replicas[0]?.authorizeUrl ?? '', '/authorize/original', {
    headers: { ...longest, 'x-original-method': 'GET', 'x-original-uri': '/' },
  });
  const head = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  expect(status).toBe(200);
  expect(head.length).toBeGreaterThan(4096);
  expect(head.length).toBeLessThan(8192);
});

describe.each(GATEWAY_KINDS)('behind %s, configured as documented,', (kind) => {
  let front: RunningProgram;
  let url: string;
  beforeAll(async () => {
    front = await startFrontGateway(kind, { tollgatePort: authorizePort(), backendPort: backend.port });
    url = `http://127.0.0.1:${front.port}`;
  });
  afterAll(() => front?.stop());
  // HAProxy takes Tollgate for away while this process stands still for seconds.
  beforeEach(() => until(async () => (await ask(url, '/')).status === 401));

  it('nothing that a consumer sends makes it another consumer or another request', async () => {
    const planId = `costly-${kind}`;
    await fleet.admin.makePlan(planId, 1000, 'day');
    await fleet.admin.call('PATCH', `/rate-limit/${planId}`, { costs: [{ path: '/free', cost: 0 }] });
    const { id, secret } = await fleet.admin.makeKey(`forged ${kind}`, planId);
    backend.received.length = 0;
    const response = await ask(url, '/costly', { headers: { ...FORGED, ...bearer(secret) } });
    expect([response.status, response.headers['x-ratelimit-remaining']]).toEqual([200, '999']);
    expect(backend.received[0]?.headers).toMatchObject({
      'x-api-key': secret,
      'tollgate-key-id': id,
      'tollgate-plan': planId,
      'tollgate-customer-id': 'anonymous',
    });
    expect(forgedFields()).toEqual(forgedBehind(kind));
    expect((await ask(url, '/free', { headers: FORGED })).status).toBe(401);
    for (const path of ['/_tollgate', '/authorize/original', '/verify']) {
      expect([path, (await ask(url, path)).status]).toEqual([
        path,
        kind === 'nginx' && path === '/_tollgate' ? 404 : 401,
      ]);
    }
  });

  it('a connection is switched to no other protocol than WebSocket', async () => {
    const { secret } = await fleet.admin.makeKey('switch', 'ample');
    const offers = [
      [
        'h2c',
        'Connection: Upgrade, HTTP2-Settings',
        'Upgrade: h2c',
        'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
      ],
      ['foo/1', 'Connection: Upgrade', 'Upgrade: foo/1'],
      ['a list', 'Connection: Upgrade', 'Upgrade: websocket, h2c'],
      ['h2c first', 'Connection: Upgrade', 'Upgrade: h2c', 'Upgrade: websocket'],
      ['h2c last', 'Connection: Upgrade', 'Upgrade: websocket', 'Upgrade: h2c'],
      // nginx and Caddy go by `Upgrade` alone.
      ...(['nginx', 'Caddy'].includes(kind) ? [] : [['not named in Connection', 'Upgrade: websocket']]),
    ];
    for (const [offer = '', ...lines] of offers) {
      [backend.received.length, backend.switched.length] = [0, 0];
      const head = await headOf(
        `GET /chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${lines.join('\r\n')}\r\n\r\n`,
        front,
      );
      // Of two fields some gateways take the one that they know.
      const isEither = offer.startsWith('h2c ') && head.startsWith('HTTP/1.1 101 ');
      const switched = isEither ? ['websocket'] : [];
      expect([offer, backend.switched]).toEqual([offer, switched]);
      expect([offer, head]).toEqual([offer, expect.stringMatching(/^HTTP\/1\.1 [12345]\d\d /)]);
      for (const { headers } of backend.received) {
        expect([offer, headers.upgrade, headers['http2-settings']]).toEqual([offer, undefined, undefined]);
      }
    }
  });

  it('what follows an offer of WebSocket that the backend declines is another request', async () => {
    const { secret } = await fleet.admin.makeKey('declined', 'ample');
    // Not a server of Node: that reads nothing behind an offer which it declines.
    let sent = '';
    const sockets: Socket[] = [];
    const plain = createTcpServer((socket) => {
      sockets.push(socket.on('error', () => socket.destroy()));
      socket.on('data', (bytes) => {
        sent += bytes.toString('latin1');
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      });
    });
    const behind = await startFrontGateway(kind, {
      ...{ tollgatePort: authorizePort(), backendPort: await listenOnLoopback(plain) },
    });
    const offer = `GET /chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
    try {
      const head = await headOf(
        `${offer}GET /admin HTTP/1.1\r\nHost: a\r\nx-api-key: forged\r\n\r\n`,
        behind,
      );
      expect(head).toMatch(/^HTTP\/1\.1 200 /);
      // By then the bytes behind the offer would have been read as well.
      expect(
        (await ask(`http://127.0.0.1:${behind.port}`, '/next', { headers: bearer(secret) })).status,
      ).toBe(200);
      expect(sent.match(/^GET \S+/gm)).toEqual(['GET /chat', 'GET /next']);
    } finally {
      await behind.stop();
      plain.close();
      for (const socket of sockets) socket.destroy();
    }
  });

  it('nothing that a consumer names in Connection is removed from a decision', async () => {
    const { id, secret } = await fleet.admin.makeKey('named', 'ample');
    const decided = {
      ...{ 'x-api-key': secret, 'tollgate-key-id': id, 'tollgate-plan': 'ample' },
      ...{ 'tollgate-customer-id': 'c1', 'x-request-id': expect.any(String) },
    };
    const named = Object.keys(decided).join(', ');
    for (const offer of [`Connection: ${named}`, `Connection: Upgrade, ${named}\r\nUpgrade: websocket`]) {
      [backend.received.length, backend.upgrades.length] = [0, 0];
      await headOf(
        `GET /chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\nX-Customer-Id: c1\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${offer}\r\n\r\n`,
        front,
      );
      const headers = [...backend.received, ...backend.upgrades][0]?.headers;
      expect([offer, headers]).toEqual([offer, expect.objectContaining(decided)]);
      expect(headers?.connection ?? '').not.toContain('tollgate');
    }
  });

  it('the cookies of the console reach no backend, and all others do', async () => {
    const { secret } = await fleet.admin.makeKey('cookies', 'ample');
    await expectOtherCookies(url, bearer(secret));
  });

  it('what is no HTTP is rejected as such, not as Tollgate away', async () => {
    for (const field of [
      'X-A: a\x01b',
      `X-A: ${'y'.repeat(7000)}\r\nX-B: ${'y'.repeat(7000)}\r\nX-C: ${'y'.repeat(7000)}`,
    ]) {
      const head = await headOf(`GET / HTTP/1.1\r\nHost: a\r\n${field}\r\n\r\n`, front);
      expect([field.slice(0, 10), head]).toEqual([
        field.slice(0, 10),
        expect.stringMatching(/^HTTP\/1\.1 4\d\d /),
      ]);
    }
  });

  it('no number of headers stops it', async () => {
    for (let count = 89; count <= 102; count += 1) {
      const lines = Array.from({ length: count }, (_, i) => `X-${i}: y\r\n`);
      const head = await headOf(`GET / HTTP/1.1\r\nHost: a\r\n${lines.join('')}\r\n`, front);
      expect([count, head]).toEqual([count, expect.stringMatching(/^HTTP\/1\.1 4\d\d /)]);
    }
    expect((await ask(url, '/')).status).toBe(401);
  });

  it('the longest response of Tollgate is no fault', async () => {
    const response = await ask(url, '/', { headers: longest });
    expect([response.status, response.headers['x-ratelimit-limit']]).toEqual([200, String(LARGEST)]);
    const asked = `x-${'h'.repeat(6900)}`;
    const preflight = await ask(url, '/', {
      method: 'OPTIONS',
      headers: [
        ...['Origin', longest.origin ?? '', 'Access-Control-Request-Method', 'PUT'],
        ...['Access-Control-Request-Headers', asked, 'Access-Control-Request-Headers', asked],
      ],
    });
    expect(preflight.status).toBe(200);
    expect(backend.received.at(-2)?.headers).toMatchObject({
      'tollgate-external-id': encodeURIComponent(OWNER),
      'tollgate-customer-id': longest['x-customer-id'],
      'tollgate-key-expires': expect.any(String),
    });
  });
});

describe.each(GATEWAY_KINDS.filter((kind) => kind !== 'Caddy'))('behind %s that fails open', (kind) => {
  let relay: TcpRelay;
  let front: RunningProgram;
  let url: string;
  beforeAll(async () => {
    relay = await TcpRelay.start(authorizePort());
    front = await startFrontGateway(kind, {
      ...{ tollgatePort: relay.port, backendPort: backend.port, failsOpen: true },
    });
    url = `http://127.0.0.1:${front.port}`;
  });
  afterAll(async () => {
    await front?.stop();
    await relay?.stop();
  });

  afterEach(() => relay.pass(authorizePort()));

  it('a request reaches the backend while Tollgate is away, without forged fields', async () => {
    relay.reject();
    await until(async () => (await ask(url, '/v1/orders')).status === 200);
    backend.received.length = 0;
    const response = await ask(url, '/v1/orders', { headers: FORGED });
    expect([response.status, backend.received.length]).toEqual([200, 1]);
    expect(forgedFields()).toEqual(forgedBehind(kind));
    if (kind === 'Envoy')
      expect(backend.received[0]?.headers['x-envoy-auth-failure-mode-allowed']).toBe('true');
    await expectOtherCookies(url, {});
  });

  it('nothing that a consumer sends passes for Tollgate away', async () => {
    await until(async () => (await ask(url, '/')).status === 401);
    backend.received.length = 0;
    const attacks = [
      'GET / HTTP/1.1\r\nHost: a\r\nx-api-key: a\r\nx-api-key: b\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 tollgate\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nExpect: nonsense\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nX-A: a\x01b\r\n\r\n',
      'GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n',
      'GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n',
      'GET /caf\xe9 HTTP/1.1\r\nHost: a\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: x-original-uri, authorization\r\n\r\n',
      'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
      'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n',
      `GET /${'x'.repeat(7900)} HTTP/1.1\r\nHost: a\r\nX-Filler: ${'y'.repeat(7000)}\r\n\r\n`,
      `GET / HTTP/1.1\r\nHost: a\r\n${Array.from({ length: 98 }, (_, i) => `X-${i}: y\r\n`).join('')}\r\n`,
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc',
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    ];
    for (const attack of attacks) {
      const head = await headOf(attack, front);
      expect([attack.slice(0, 60), head.split('\r\n')[0]]).toEqual([
        attack.slice(0, 60),
        expect.stringMatching(/^HTTP\/1\.1 [45]\d\d/),
      ]);
    }
    expect(backend.received).toEqual([]);
  });
});

describe('behind nginx that fails open', () => {
  it.each([502, 503, 504])(
    'a request reaches the backend while a balancer in between says %i',
    async (status) => {
      const balancer = createServer((_req, res) => res.writeHead(status).end());
      const tollgatePort = await listenOnLoopback(balancer);
      const front = await startFrontGateway('nginx', {
        ...{ tollgatePort, backendPort: backend.port, failsOpen: true },
      });
      backend.received.length = 0;
      const response = await ask(`http://127.0.0.1:${front.port}`, '/v1/orders');
      expect([response.status, backend.received.length]).toEqual([200, 1]);
      await front.stop();
      balancer.close();
      balancer.closeAllConnections();
    },
  );
});

describe('behind nginx that fails open, of a replica', () => {
  let relay: TcpRelay;
  let postgres: Client;
  let replica: RunningGateway;
  let front: RunningProgram;
  let url: string;
  beforeAll(async () => {
    relay = await TcpRelay.start(portOf(fleet.databaseUrl));
    postgres = new Client({ connectionString: fleet.databaseUrl });
    await postgres.connect();
    replica = await startInProcess({ ...fleet.environment, DATABASE_URL: relay.urlOf(fleet.databaseUrl) });
    const { port } = new URL(replica.authorizeUrl ?? '');
    front = await startFrontGateway('nginx', {
      ...{ tollgatePort: Number(port), backendPort: backend.port, failsOpen: true },
    });
    url = `http://127.0.0.1:${front.port}`;
  });
  afterAll(async () => {
    await front?.stop();
    await replica?.stop();
    await postgres?.end();
    await relay?.stop();
  });

  const hang = async () => relay.silence();
  const block = async () => {
    await postgres.query('BEGIN');
    await postgres.query('LOCK TABLE consumer_keys IN ACCESS EXCLUSIVE MODE');
  };
  it.each([
    ['whose Postgres hangs', hang, async () => relay.pass()],
    ['whose statements are blocked', block, () => postgres.query('ROLLBACK')],
  ])('%s, no request gets through without a decision', async (_when, begin, end) => {
    const madeUp = bearer(createSecret('tg', systemRandom));
    const disabled = await fleet.admin.makeKey('disabled', 'ample');
    expect((await ask(url, '/', { headers: bearer(disabled.secret) })).status).toBe(200);
    await fleet.admin.call('PATCH', `/consumer-api-key/${disabled.id}`, { enabled: false });
    const origin = 'https://page.example.com';
    const ofRound = async () => {
      backend.received.length = 0;
      await begin();
      const responses = await Promise.all([
        ask(url, '/', { headers: madeUp }),
        ask(url, '/', { headers: bearer(disabled.secret) }),
        ask(url, '/', { headers: { origin } }),
        ask(url, '/', { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PUT' } }),
      ]);
      await end();
      return [backend.received.length, ...responses.map(({ status, body }) => `${status} ${body?.code}`)];
    };
    const undecided = [
      0,
      '503 store_unavailable',
      '503 store_unavailable',
      '401 missing_api_key',
      '503 store_unavailable',
    ];
    let seen = await ofRound();
    // nginx waits a second longer than the gateway: a machine that stands still for that long is no fault of either.
    for (let more = 2; more > 0 && !isDeepStrictEqual(seen, undecided); more -= 1) seen = await ofRound();
    expect(seen).toEqual(undecided);
    await until(async () => (await ask(url, '/', { headers: madeUp })).status === 401);
  });
});
