import { BlockList } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { MANAGEMENT_PORTS, withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe.each(MANAGEMENT_PORTS)('what ends at the hop, %s', (_where, settings) => {
  const stage = withGateway(settings);

  async function forwarded(...lines: readonly string[]): Promise<string> {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /', ...lines));
    await client.until((text) => text.endsWith('ok'));
    return stage.backend.received;
  }

  it.each([
    'Keep-Alive: timeout=1',
    'Proxy: http://proxy.example:3128',
    'Proxy-Connection: keep-alive',
    'Proxy-Authorization: Basic x',
    'Proxy-Authenticate: Basic',
    'Proxy-Authentication-Info: nextnonce="x"',
    'TE: trailers',
    'Trailer: X',
    'Upgrade: h2c',
    'HTTP2-Settings: AAMAAABkAAQAAP__',
  ])('%j is not forwarded', async (line) => {
    const name = line.split(':')[0] ?? '';
    expect((await forwarded(line)).toLowerCase()).not.toContain(`\r\n${name.toLowerCase()}:`);
  });

  it('headers named in Connection are not forwarded, others are', async () => {
    const received = await forwarded(
      'Connection: Secret-One , keep-alive',
      'Connection: two',
      'Secret-One: 1',
      'two: 2',
      'three: 3',
    );
    expect(received).not.toMatch(/secret-one|\r\ntwo/i);
    expect(received).toContain('\r\nthree: 3\r\n');
    expect(received).toContain('\r\nconnection: keep-alive\r\n');
  });

  it('Connection can not remove the key, the credentials, the host or the framing', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(
      `${stage.gateway.head(
        'POST /',
        'Connection: x-api-key, authorization, host, content-length, x-forwarded-for, via',
        'Content-Length: 5',
      )}hello`,
    );
    await client.until((text) => text.endsWith('ok'));
    const { received } = stage.backend;
    expect(received).toContain(`\r\nx-api-key: ${stage.gateway.secret}\r\n`);
    expect(received).toContain(`\r\nAuthorization: Bearer ${stage.gateway.secret}\r\n`);
    expect(received).toContain(`\r\nhost: 127.0.0.1:${stage.backend.port}\r\n`);
    expect(received).toMatch(/\r\ncontent-length: 5\r\n/i);
    expect(received).toContain('\r\nX-Forwarded-For: 127.0.0.1\r\n');
    expect(received).toContain('\r\nVia: 1.1 tollgate\r\n');
    expect(received).toMatch(/\r\n\r\nhello$/);
  });

  it('Transfer-Encoding frames the body although Connection names it', async () => {
    stage.backend.onConnection((connection) => {
      connection
        .until((text) => text.endsWith('0\r\n\r\n'))
        .then(
          () => connection.send(OK),
          () => {},
        );
    });
    const client = await stage.gateway.send(
      `${stage.gateway.head('POST /', 'Connection: transfer-encoding', 'Transfer-Encoding: chunked')}5\r\nhello\r\n0\r\n\r\n`,
    );
    await client.until((text) => text.endsWith('ok'));
    expect(stage.backend.received).toMatch(/\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n$/i);
  });

  it('headers named in Connection are not forwarded in a response', async () => {
    stage.backend.respond(
      [
        'HTTP/1.1 200 OK',
        'Connection: Hidden, content-length',
        'Hidden: 1',
        'Keep-Alive: timeout=20',
        'Proxy-Connection: keep-alive',
        'Proxy-Authenticate: Basic',
        'Proxy-Authentication-Info: nextnonce="x"',
        'Upgrade: h2c',
        'Trailer: X',
        'TE: trailers',
        'Shown: 1',
        'Content-Length: 2',
        '',
        'ok',
      ].join('\r\n'),
    );
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    const response = await client.until((text) => text.endsWith('ok'));
    expect(response).not.toMatch(/hidden|proxy-|upgrade|trailer|\r\nte:|timeout=20/i);
    expect(response).toContain('\r\nShown: 1\r\n');
    expect(response).toContain('\r\nContent-Length: 2\r\n');
  });

  it('repeated headers keep their order, their case and their bytes, both ways', async () => {
    stage.backend.respond(
      'HTTP/1.1 200 Fine by me\r\nSet-Cookie: a=1; path=/\r\nX-CaSe: \xe9 x\r\nset-cookie: b=2\r\nContent-Length: 2\r\n\r\nok',
    );
    const client = await stage.gateway.send(
      stage.gateway.head('GET /', 'X-MiXed: one', 'Cookie: a=1', 'x-mixed: \xe9  two', 'Cookie: b=2'),
    );
    const response = await client.until((text) => text.endsWith('ok'));
    expect(response).toMatch(/^HTTP\/1\.1 200 Fine by me\r\n/);
    expect(response).toMatch(/\r\nSet-Cookie: a=1; path=\/\r\nX-CaSe: \xe9 x\r\nset-cookie: b=2\r\n/);
    expect(stage.backend.received).toMatch(
      /\r\nX-MiXed: one\r\nCookie: a=1\r\nx-mixed: \xe9 {2}two\r\nCookie: b=2\r\n/,
    );
  });
});

describe('the client address', () => {
  const FORGED = [
    'X-Forwarded-For: 6.6.6.6',
    'X-Forwarded-Host: forged.example',
    'X-Forwarded-Proto: https',
    'Forwarded: for=6.6.6.6',
    'X-Real-IP: 6.6.6.6',
    'X-Forwarded-Client-Cert: forged',
  ];

  describe('from a stranger', () => {
    const stage = withGateway();
    it('what it says is replaced by what we see', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(stage.gateway.head('GET /', ...FORGED));
      await client.until((text) => text.endsWith('ok'));
      const { received } = stage.backend;
      expect(received).not.toMatch(/6\.6\.6\.6|forged|x-real-ip|client-cert/i);
      expect(received).toContain('\r\nX-Forwarded-For: 127.0.0.1\r\n');
      expect(received).toContain('\r\nX-Forwarded-Host: api.example.com\r\n');
      expect(received).toContain('\r\nX-Forwarded-Proto: http\r\n');
      expect(received).toContain('\r\nForwarded: for=127.0.0.1;host=api.example.com;proto=http\r\n');
    });
    it('the host is that of each request, not of the one before on the connection', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(stage.gateway.head('GET /1'));
      await client.until((text) => text.split('\r\n\r\nok').length === 2);
      client.send(stage.gateway.head('GET http://other.example/2'));
      await client.until((text) => text.split('\r\n\r\nok').length === 3);
      client.send(stage.gateway.head('GET /3'));
      await client.until((text) => text.split('\r\n\r\nok').length === 4);
      const { received } = stage.backend;
      expect(received.match(/X-Forwarded-Host: .*|host=[^;]*/g)).toEqual([
        'X-Forwarded-Host: api.example.com',
        'host=api.example.com',
        'X-Forwarded-Host: other.example',
        'host=other.example',
        'X-Forwarded-Host: api.example.com',
        'host=api.example.com',
      ]);
    });
  });

  describe('from a trusted proxy', () => {
    const trustedProxies = new BlockList();
    trustedProxies.addSubnet('127.0.0.0', 8, 'ipv4');
    const stage = withGateway({ trustedProxies });
    it('its chain is continued, its host and protocol are kept', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(stage.gateway.head('GET /', ...FORGED));
      await client.until((text) => text.endsWith('ok'));
      const { received } = stage.backend;
      expect(received).toContain('\r\nX-Forwarded-For: 6.6.6.6, 127.0.0.1\r\n');
      expect(received).toContain('\r\nX-Forwarded-Host: forged.example\r\n');
      expect(received).toContain('\r\nX-Forwarded-Proto: https\r\n');
      expect(received).toContain('\r\nX-Real-IP: 6.6.6.6\r\n');
      expect(received).toContain(
        '\r\nForwarded: for=6.6.6.6, for=127.0.0.1;host=api.example.com;proto=http\r\n',
      );
    });
    it('other spellings of them are dropped, which the proxy may have passed on', async () => {
      stage.backend.respond(OK);
      const spelled = FORGED.filter((line) => line.startsWith('X-')).map((line) => line.replaceAll('-', '.'));
      const client = await stage.gateway.send(stage.gateway.head('GET /', ...spelled));
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received).not.toMatch(/6\.6\.6\.6|forged/);
    });
  });
});

describe('the credentials of the client', () => {
  const stage = withGateway({ forwardAuthorization: false });
  it('stay here when the operator wants it, and x-api-key is sent all the same', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await client.until((text) => text.endsWith('ok'));
    expect(stage.backend.received).not.toMatch(/authorization/i);
    expect(stage.backend.received).toContain(`\r\nx-api-key: ${stage.gateway.secret}\r\n`);
  });
});

describe('the cookies of the console', () => {
  const stage = withGateway({ oidcIssuer: new URL('https://login.example.com') });
  it('are not sent to the backend, and other cookies are, byte for byte', async () => {
    stage.backend.respond(OK);
    const cookies = [
      'COOKIE: a="1; __Host-tollgate=tgs_x;  b=2',
      'Cookie: __Host-tollgate-sign-in=x; __Host-tollgate=y',
      'cookie: c=%20;d=__Host-tollgate',
      'CDN-Loop: x',
    ];
    const client = await stage.gateway.send(stage.gateway.head('GET /', ...cookies));
    await client.until((text) => text.endsWith('ok'));
    const { received } = stage.backend;
    expect(received.match(/^(?:cookie|cdn-loop):.*$/gim)).toEqual([
      'COOKIE: a="1;  b=2',
      'cookie: c=%20;d=__Host-tollgate',
      'CDN-Loop: x',
    ]);
  });
});

describe('what the gateway says of a key', () => {
  const CLAIMED = [
    'Tollgate-Key-Id: forged',
    'TOLLGATE-PLAN: forged',
    'Tollgate-External-Id: forged',
    'tollgate-customer-id: forged',
    'Tollgate-Anything: forged',
    'Tollgate.Plan: forged',
    'Tollgate!Plan: forged',
    'tollgate_plan: forged',
  ];

  describe.each(['X-Customer-Id', 'Tollgate-Customer-Id'])('with the customer in %s', (customerIdHeader) => {
    const stage = withGateway({ customerIdHeader: customerIdHeader.toLowerCase() });
    it.each([
      ['a request', []],
      ['an upgrade', ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: abc']],
    ])('is in no header of a client that %s forwards', async (_what, lines) => {
      stage.backend.respond(OK);
      const claimed = CLAIMED.filter(
        (line) => !line.toLowerCase().startsWith(`${customerIdHeader}:`.toLowerCase()),
      );
      const client = await stage.gateway.send(
        stage.gateway.head('GET /', ...lines, ...claimed, `${customerIdHeader}: c1`, 'Tollgates: kept'),
      );
      await client.until((text) => text.endsWith('ok'));
      const { received } = stage.backend;
      expect(received).not.toMatch(/forged/);
      expect(received).toContain(`\r\n${customerIdHeader}: c1\r\nTollgates: kept\r\n`);
    });
  });
});
