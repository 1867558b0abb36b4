import { describe, expect, it } from '@jest/globals';
import { MANAGEMENT_PORTS, withGateway } from '../proxy/support/with-gateway.ts';
import { until } from '../support/until.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const CHUNKED_BODY = '5\r\nhello\r\n0\r\n\r\n';

/** Sends bytes and resolves with the response once the gateway has closed the connection. */
type Send = (
  bytes: string,
) => Promise<{ readonly status: number; readonly body: string; readonly all: string }>;

describe.each(MANAGEMENT_PORTS)('the head of a request, %s', (_where, settings) => {
  const stage = withGateway(settings);
  const rejection: Send = async (bytes) => {
    const client = await stage.gateway.send(bytes);
    const all = await client.ended();
    const [head = '', body = ''] = all.split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), body, all };
  };
  /** Expects a JSON rejection that closes the connection while nothing reaches the backend. */
  async function expectRejected(bytes: string, status: number): Promise<void> {
    stage.backend.respond(OK);
    const response = await rejection(bytes);
    expect(response.all).toMatch(/^HTTP\/1\.1 \d{3} [^\r\n]*\r\n/);
    expect(response.status).toBe(status);
    expect(response.all).toMatch(/\r\nConnection: close\r\n/i);
    expect(response.all).toMatch(/\r\nX-Request-Id: [A-Za-z0-9_-]{16}\r\n/);
    expect(response.all).toMatch(/\r\nContent-Type: application\/json/i);
    expect(Object.keys(JSON.parse(response.body)).toSorted()).toEqual(['code', 'error']);
    expect(response.body).not.toContain(stage.gateway.secret);
    expect(stage.backend.received).toBe('');
  }
  const head = (line: string, ...lines: readonly string[]): string => stage.gateway.head(line, ...lines);

  describe('ambiguous framing is rejected, and nothing reaches the backend', () => {
    it.each<readonly [string, readonly string[], string, number]>([
      [
        'Content-Length and Transfer-Encoding',
        ['Content-Length: 5', 'Transfer-Encoding: chunked'],
        CHUNKED_BODY,
        400,
      ],
      [
        'Transfer-Encoding and Content-Length',
        ['Transfer-Encoding: chunked', 'Content-Length: 5'],
        CHUNKED_BODY,
        400,
      ],
      ['two equal Content-Length fields', ['Content-Length: 5', 'Content-Length: 5'], 'hello', 400],
      ['two different Content-Length fields', ['Content-Length: 5', 'Content-Length: 6'], 'hello!', 400],
      ['a list in Content-Length', ['Content-Length: 5, 5'], 'hello', 400],
      ['a sign in Content-Length', ['Content-Length: +5'], 'hello', 400],
      ['a negative Content-Length', ['Content-Length: -5'], 'hello', 400],
      ['a hexadecimal Content-Length', ['Content-Length: 0x5'], 'hello', 400],
      ['an empty Content-Length', ['Content-Length:'], '', 400],
      ['a Content-Length with a blank in it', ['Content-Length: 1 5'], 'hello', 400],
      ['a Content-Length beyond all bounds', ['Content-Length: 99999999999999999999999'], 'hello', 400],
      ['another transfer coding', ['Transfer-Encoding: gzip'], CHUNKED_BODY, 400],
      ['a coding before chunked', ['Transfer-Encoding: gzip, chunked'], CHUNKED_BODY, 501],
      ['an empty coding before chunked', ['Transfer-Encoding: ,chunked'], CHUNKED_BODY, 400],
      [
        'two Transfer-Encoding fields',
        ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'],
        CHUNKED_BODY,
        501,
      ],
      ['chunked twice', ['Transfer-Encoding: chunked, chunked'], CHUNKED_BODY, 400],
      ['a coding that begins with x', ['Transfer-Encoding: xchunked'], CHUNKED_BODY, 400],
      ['a coding in quotes', ['Transfer-Encoding: "chunked"'], CHUNKED_BODY, 400],
      ['a coding with a parameter', ['Transfer-Encoding: chunked;a=b'], CHUNKED_BODY, 400],
      ['a coding after chunked', ['Transfer-Encoding: chunked, gzip'], CHUNKED_BODY, 400],
      ['chunked before and behind', ['Transfer-Encoding: chunked, gzip, chunked'], CHUNKED_BODY, 400],
      ['an empty Transfer-Encoding', ['Transfer-Encoding:'], CHUNKED_BODY, 400],
      ['a blank Transfer-Encoding', ['Transfer-Encoding:   '], CHUNKED_BODY, 400],
      [
        'an empty one before chunked',
        ['Transfer-Encoding:', 'Transfer-Encoding: chunked'],
        CHUNKED_BODY,
        400,
      ],
      ['no comma before chunked', ['Transfer-Encoding: gzip chunked'], CHUNKED_BODY, 400],
      ['what is no token before chunked', ['Transfer-Encoding: g zip, chunked'], CHUNKED_BODY, 400],
      ['chunked with a parameter before it', ['Transfer-Encoding: chunked;a=b, chunked'], CHUNKED_BODY, 400],
      ['a coding with parameters before it', ['Transfer-Encoding: x;a=b, CHUNKED'], CHUNKED_BODY, 501],
      ['the coding identity', ['Transfer-Encoding: identity'], CHUNKED_BODY, 400],
      ['a vertical tab before chunked', ['Transfer-Encoding: \x0bchunked'], CHUNKED_BODY, 400],
      ['a folded coding', ['Transfer-Encoding:', ' chunked'], CHUNKED_BODY, 400],
    ])('%s', async (_what, lines, body, status) => {
      await expectRejected(head('POST /', ...lines) + body, status);
    });

    it('Transfer-Encoding in HTTP/1.0', async () => {
      const bytes = head('POST /', 'Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0');
      await expectRejected(bytes + CHUNKED_BODY, 400);
    });

    it.each<readonly [string, string]>([
      ['a folded field', 'A: b\r\n c'],
      ['a field folded with a tab', 'A: b\r\n\tc'],
      ['a fold with nothing in it', 'A: b\r\n '],
      ['a bare LF after a field', 'A: b\nC: d'],
      ['a bare CR in a field', 'A: b\rC: d'],
      ['a bare CR at the end of a field', 'A: b\r'],
      ['NUL in a value', 'A: b\0c'],
      ['another control character in a value', 'A: b\x01c'],
      ['NUL in a name', 'A\0: b'],
      ['a space before the colon', 'A : b'],
      ['a tab before the colon', 'A\t: b'],
      ['a space before the colon of Content-Length', 'Content-Length : 0'],
      ['a name that is empty', ': b'],
      ['a line without a colon', 'abc'],
    ])('%s', async (_what, line) => {
      await expectRejected(head('GET /', line), 400);
    });

    it('a space before the first field', async () => {
      await expectRejected('GET / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n', 400);
    });

    it.each<readonly [string, string, number]>([
      ['a bare LF after the request line', 'GET / HTTP/1.1\nHost: a\r\n\r\n', 400],
      ['bare LFs everywhere', 'GET / HTTP/1.1\nHost: a\n\n', 400],
      ['a bare LF at the end of the head', 'GET / HTTP/1.1\r\nHost: a\r\n\n', 400],
    ])('%s', async (_what, bytes, status) => {
      await expectRejected(bytes, status);
    });

    it.each<readonly [string, string]>([
      ['a bare LF after a chunk size', '5\nhello\r\n0\r\n\r\n'],
      ['a bare LF after chunk data', '5\r\nhello\n0\r\n\r\n'],
      ['a bare LF in a chunk extension', '5;a\nb\r\nhello\r\n0\r\n\r\n'],
      ['a hexadecimal prefix', '0x5\r\nhello\r\n0\r\n\r\n'],
      ['a blank behind the size', '5 \r\nhello\r\n0\r\n\r\n'],
      ['a size beyond all bounds', 'ffffffffffffffffff\r\nhello\r\n0\r\n\r\n'],
      ['more data than announced', '5\r\nhelloXX0\r\n\r\n'],
    ])('a chunked body with %s is never completed towards the backend', async (_what, body) => {
      const client = await stage.gateway.send(head('POST /', 'Transfer-Encoding: chunked') + body);
      const all = await client.ended();
      expect(all).toMatch(/^HTTP\/1\.1 400 .*\r\nX-Request-Id: /s);
      expect(stage.backend.received).not.toContain('\r\n0\r\n\r\n');
      await until(() => stage.gateway.observed.length === 1);
      expect(stage.gateway.observed).toMatchObject([
        { status: 400, outcome: 'invalid_request', errorCode: 'bad_request' },
      ]);
    });
  });

  describe('version and Host', () => {
    it.each<readonly [string, string, number]>([
      ['HTTP/2.0 is 505', 'GET / HTTP/2.0\r\nHost: a\r\n\r\n', 505],
      ['HTTP/3.0 is 505', 'GET / HTTP/3.0\r\nHost: a\r\n\r\n', 505],
      ['HTTP/2.1 is 505', 'GET / HTTP/2.1\r\nHost: a\r\n\r\n', 505],
      ['HTTP/0.8 is 505', 'GET / HTTP/0.8\r\n\r\n', 505],
      ['HTTP/1.2 is 400', 'GET / HTTP/1.2\r\nHost: a\r\n\r\n', 400],
      ['HTTP/1.A is 400', 'GET / HTTP/1.A\r\nHost: a\r\n\r\n', 400],
      ['HTTP/11.1 is 400', 'GET / HTTP/11.1\r\nHost: a\r\n\r\n', 400],
      ['HTTP/1.11 is 400', 'GET / HTTP/1.11\r\nHost: a\r\n\r\n', 400],
      ['HTTP/3.01 is 400', 'GET / HTTP/3.01\r\nHost: a\r\n\r\n', 400],
      ['HTTP/2.0X is 400', 'GET / HTTP/2.0X\r\nHost: a\r\n\r\n', 400],
      ['HTTP/2 is 400', 'GET / HTTP/2\r\nHost: a\r\n\r\n', 400],
      ['HTTP/ is 400', 'GET / HTTP/\r\nHost: a\r\n\r\n', 400],
      ['HTP/1.1 is 400', 'GET / HTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['http/1.1 is 400', 'GET / http/1.1\r\nHost: a\r\n\r\n', 400],
      ['a blank after the version is 400', 'GET / HTTP/1.1 \r\nHost: a\r\n\r\n', 400],
      ['PRI in HTTP/1.1 is 400', 'PRI / HTTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['GET in RTSP/2.0 is 400', 'GET / RTSP/2.0\r\nHost: a\r\n\r\n', 400],
      ['HTTP/0.9 is 505', 'GET / HTTP/0.9\r\nHost: a\r\n\r\n', 505],
      ['a request without a version is 505', 'GET /\r\n\r\n', 505],
      ['GET in RTSP/1.0 is 400', 'GET / RTSP/1.0\r\nHost: a\r\n\r\n', 400],
      ['OPTIONS in RTSP/1.0 is 400', '\r\nOPTIONS  /a?b  RTSP/1.0\r\nCSeq: 1\r\n\r\n', 400],
      ['DESCRIBE in RTSP/1.0 is 400', 'DESCRIBE rtsp://a/b RTSP/1.0\r\nCSeq: 1\r\n\r\n', 400],
      ['DESCRIBE in RTSP/1.1 is 400', 'DESCRIBE / RTSP/1.1\r\nHost: a\r\n\r\n', 400],
      ['SOURCE in ICE/1.0 is 400', 'SOURCE /a ICE/1.0\r\nHost: a\r\n\r\n', 400],
      ['the preface of HTTP/2 is 505', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
      ['no Host is 400', 'GET / HTTP/1.1\r\n\r\n', 400],
      ['two Hosts are 400', 'GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n', 400],
      ['an empty Host is 400', 'GET / HTTP/1.1\r\nHost:\r\n\r\n', 400],
      ['a Host with a path is 400', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n', 400],
      ['a Host with a user is 400', 'GET / HTTP/1.1\r\nHost: a@b\r\n\r\n', 400],
      ['a Host with a blank is 400', 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n', 400],
      ['a Host with two ports is 400', 'GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n', 400],
      ['a list of Hosts is 400', 'GET / HTTP/1.1\r\nHost: a, b\r\n\r\n', 400],
    ])('%s', async (_what, bytes, status) => {
      await expectRejected(bytes, status);
    });

    it.each<readonly [string, number]>([
      ['HTTP/3.0', 505],
      ['HTTP/1.A', 400],
      ['HTTP/11.1', 400],
      ['HTP/1.1', 400],
    ])('%s is %i wherever the segments end', async (version, status) => {
      const bytes = `GET / ${version}\r\nHost: a\r\n\r\n`;
      for (let at = 1; at < bytes.indexOf('\r'); at += 1) {
        const client = await stage.gateway.send(bytes.slice(0, at));
        await stage.gateway.catchUp();
        client.send(bytes.slice(at));
        expect([at, await client.ended()]).toEqual([at, expect.stringMatching(`^HTTP/1\\.1 ${status} `)]);
      }
      expect(stage.backend.received).toBe('');
    });

    it.each([
      ['', ''],
      ['Connection: keep-alive, close\r\n', ''],
      ['TE: chunked\r\n', 'Transfer-Encoding: chunked\r\n'],
      ['Connection: keep-alive\r\nTE: chunked\r\n', 'Transfer-Encoding: chunked\r\n'],
    ])('HTTP/1.0 with %j gets no chunks, and a connection that ends', async (fields, coding) => {
      const body = coding === '' ? 'ok' : '2\r\nok\r\n0\r\n\r\n';
      const length = coding === '' ? 'Content-Length: 2\r\n' : coding;
      stage.backend.respond(`HTTP/1.1 200 OK\r\n${length}\r\n${body}`);
      const client = await stage.gateway.send(
        `GET / HTTP/1.0\r\n${fields}Authorization: Bearer ${stage.gateway.secret}\r\n\r\n`,
      );
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nok$/s);
    });

    it('HTTP/1.0 without a Host is served', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(
        `GET / HTTP/1.0\r\nAuthorization: Bearer ${stage.gateway.secret}\r\n\r\n`,
      );
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 .*ok$/s);
      expect(stage.backend.received).toContain(`host: 127.0.0.1:${stage.backend.port}\r\n`);
      expect(stage.backend.received).not.toMatch(/x-forwarded-host/i);
    });
  });

  describe('targets and methods', () => {
    it('an absolute-form target goes on as origin-form, and its host counts', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(head('GET http://other.example:81/a/b?c=d'));
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received).toMatch(/^GET \/a\/b\?c=d HTTP\/1\.1\r\n/);
      expect(stage.backend.received).toContain('\r\nX-Forwarded-Host: other.example:81\r\n');
    });

    it('an absolute-form target without a path is the root', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(head('GET http://other.example?x'));
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received).toMatch(/^GET \/\?x HTTP\/1\.1\r\n/);
    });

    it.each<readonly [string, string, number]>([
      ['GET * is 400', 'GET *', 400],
      ['a fragment is 400', 'GET /a#b', 400],
      ['another scheme is 400', 'GET ftp://a/b', 400],
      ['a user in the target is 400', 'GET http://u@a/b', 400],
      ['an empty authority is 400', 'GET http:///b', 400],
      ['a scheme without an authority is 400', 'GET http:a/b', 400],
      ['a scheme before a path is 400', 'GET https:/b', 400],
      ['a target that is no path is 400', 'GET a', 400],
      ['an unknown method is 400', 'FOO /', 400],
      ['a method in lower case is 400', 'get /', 400],
    ])('%s', async (_what, line, status) => {
      await expectRejected(head(line), status);
    });

    it.each(['OPTIONS *', 'OPTIONS http://a.example'])(
      'the gateway itself responds to %s, and goes on with the connection',
      async (line) => {
        stage.backend.respond(OK);
        const client = await stage.gateway.send(
          `${line} HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nContent-Length: 2\r\n\r\nab${head('GET /after')}`,
        );
        const all = await client.until((text) => text.endsWith('ok'));
        const [first = '', second = ''] = all.split('\r\n\r\n');
        expect(first).toMatch(/^HTTP\/1\.1 204 /);
        expect(first).toContain('\r\nAllow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT');
        expect(first).toContain('\r\nX-Request-Id: mine');
        expect(first).not.toMatch(/content-length|transfer-encoding/i);
        expect(second).toMatch(/^HTTP\/1\.1 200 /);
        expect(stage.backend.received).toMatch(/^GET \/after /);
      },
    );

    it.each<readonly [string, readonly string[], string]>([
      ['a body in chunks', ['Transfer-Encoding: chunked'], CHUNKED_BODY],
      ['a body that waits for a 100', ['Expect: 100-continue', 'Content-Length: 5'], ''],
    ])('OPTIONS * with %s is the last request of its connection', async (_what, lines, body) => {
      const client = await stage.gateway.send(head('OPTIONS *', ...lines) + body);
      const all = await client.ended();
      expect(all).toMatch(/^HTTP\/1\.1 204 /);
      expect(all.match(/HTTP\/1\.1 /g)).toHaveLength(1);
      expect(stage.backend.received).toBe('');
    });

    it.each<readonly [string, readonly string[], number]>([
      ['two Hosts', ['Host: b'], 400],
      ['a loop', ['Via: 1.1 tollgate'], 508],
      ['an unknown coding', ['Transfer-Encoding: gzip, chunked'], 501],
      ['an upgrade', ['Connection: Upgrade', 'Upgrade: websocket'], 400],
    ])('OPTIONS * with %s is rejected like any other head', async (_what, lines, status) => {
      await expectRejected(head('OPTIONS *', ...lines), status);
    });

    it('the rejection of an unknown method says that it is the method', async () => {
      expect((await rejection(head('FOO /'))).all).toContain(
        'does not begin with a known method in capitals',
      );
    });
  });

  it.each(['TRACE /', 'TRACE http://a.example/', 'CONNECT a.example:443', 'CONNECT /'])(
    '%s is 405, and the response says what is allowed',
    async (line) => {
      await expectRejected(head(line), 405);
      expect((await rejection(head(line))).all).toMatch(
        /\r\nAllow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n/,
      );
    },
  );

  describe('paths', () => {
    it.each([
      '/a/b?c=d&e',
      '//a//b/',
      '/a;x=1/b?',
      '/%C3%A9?q=%2F..%2f',
      '/a%20b/%7E',
      '/a/.b/..c/d.',
      "/!$&'()*+,=:@-._~",
      '/?/../x',
      '/a?b\\c',
      '/Consumer-Api-Key',
      '/consumer-api-keys',
    ])('%s goes to the backend byte for byte', async (target) => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(head(`GET ${target}`));
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received.split('\r\n')[0]).toBe(`GET ${target} HTTP/1.1`);
    });

    it.each([
      '/.',
      '/..',
      '/a/../b',
      '/a/./b',
      '/a/..',
      '/%2e%2e/b',
      '/a/%2E/b',
      '/a/.%2e/b',
      '/a/..%2fb',
      '/a\\b',
      '/a%5cb',
      '/a%00b',
      '/a%0d%0ab',
      '/a%7f',
      '/a%',
      '/a%2',
      '/a%zz',
      '/a\tb',
      '/a\0b',
      '/\xe9',
    ])('%j is 400', async (target) => {
      await expectRejected(head(`GET ${target}`), 400);
    });
  });

  describe('names and repeated credentials', () => {
    it('names with _ are dropped', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(
        head('GET /', 'X_API_KEY: forged', 'x_api-key: forged', 'Content_Length: 5', 'Kept: yes'),
      );
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received).not.toContain('forged');
      expect(stage.backend.received).not.toMatch(/^[^:\r\n]*_[^:\r\n]*:/m);
      expect(stage.backend.received).toContain('\r\nKept: yes\r\n');
    });

    it('names that a backend may take for those of the gateway are dropped', async () => {
      stage.backend.respond(OK);
      const spelled = [...".!#$%&'*+^`|~"].flatMap((sign) =>
        [
          'X-Api-Key',
          'X-Forwarded-For',
          'x-forwarded-Prefix',
          'X-REAL-IP',
          'Content-Length',
          'X-Request-Id',
          'X-Customer-Id',
        ].flatMap((name) => [name.replaceAll('-', sign), name.replace('-', sign)]),
      );
      const client = await stage.gateway.send(
        head('GET /', ...spelled.map((name) => `${name}: forged`), 'X.Kept: yes', 'X!Api.Keys: yes'),
      );
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received).not.toContain('forged');
      expect(stage.backend.received).toContain('\r\nX.Kept: yes\r\nX!Api.Keys: yes\r\n');
    });

    it("a client's own x-api-key is overwritten, whatever its case", async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(head('GET /', 'X-Api-Key: forged'));
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received.match(/x-api-key/gi)).toHaveLength(1);
      expect(stage.backend.received).toContain(`\r\nx-api-key: ${stage.gateway.secret}\r\n`);
    });

    it.each(['x-api-key: a\r\nX-API-Key: b', 'Authorization: Bearer b', 'authorization: Basic x'])(
      'a repeated %j is 400',
      async (lines) => {
        await expectRejected(head('GET /', lines), 400);
      },
    );
  });

  describe('loops', () => {
    it.each([
      'Via: 1.1 tollgate',
      'Via: 1.0 fred, 1.1 Tollgate (x)',
      'Via: 1.0 fred\r\nVia: HTTP/1.1 tollgate',
    ])('%j is 508', async (via) => {
      await expectRejected(head('GET /', via), 508);
    });

    it('another hop is kept and ours is added behind it', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(head('GET /', 'Via: 1.0 nottollgate, 1.1 tollgate.example'));
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received).toMatch(
        /\r\nVia: 1\.0 nottollgate, 1\.1 tollgate\.example\r\nVia: 1\.1 tollgate\r\n/,
      );
    });
  });

  describe('size', () => {
    it('a head over 16 KiB is 431', async () => {
      await expectRejected(head('GET /', `A: ${'x'.repeat(17_000)}`), 431);
    });

    /** A request with a head of this size. */
    function headOf(bytes: number): string {
      return head('GET /', `A: ${'x'.repeat(bytes - head('GET /', 'A: ').length)}`);
    }

    it('a head of exactly 16 KiB passes', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(headOf(16 * 1024));
      await client.until((text) => text.endsWith('ok'));
    });

    it('a head of a byte more than 16 KiB is 431', async () => {
      await expectRejected(headOf(16 * 1024 + 1), 431);
    });

    it('a target over 16 KiB is 431', async () => {
      await expectRejected(head(`GET /${'x'.repeat(17_000)}`), 431);
    });

    it('many small fields over 16 KiB are 431', async () => {
      await expectRejected(head('GET /', ...Array.from({ length: 3000 }, (_, i) => `a${i}:`)), 431);
    });

    it('a target over 8 KiB is 414', async () => {
      await expectRejected(head(`GET /${'x'.repeat(8192)}`), 414);
      await expectRejected(head(`GET /${'%25'.repeat(3000)}`), 414);
    });

    it('a target of 8 KiB arrives', async () => {
      stage.backend.respond(OK);
      const target = `/${'%25'.repeat(2730)}x`;
      const client = await stage.gateway.send(head(`GET ${target}`));
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received).toContain(`GET ${target} HTTP/1.1`);
    });

    /** A request with `count` headers, the ones that every request has included. */
    function withHeaders(count: number): string {
      const own = head('GET /').split('\r\n').length - 3;
      return head('GET /', ...Array.from({ length: count - own }, (_, i) => `${i}:`));
    }

    it('two hundred headers all arrive', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(withHeaders(200));
      await client.until((text) => text.endsWith('ok'));
      expect(stage.backend.received).toMatch(/\r\n190: \r\n/);
    });

    it.each([201, 202, 232, 1500])('%i headers are 431', async (count) => {
      await expectRejected(withHeaders(count), 431);
    });

    it.each([201, 202])('the body for %i headers names the limit of them', async (count) => {
      expect((await rejection(withHeaders(count))).body).toContain('more than 200 headers');
    });
  });

  describe('after a rejection', () => {
    it('nothing after a rejected head gets a response, even while an earlier one is due', async () => {
      const client = await stage.gateway.send(head('GET /first') + head('GET /..') + head('GET /third'));
      const backend = await stage.backend.connection();
      await backend.head();
      await stage.gateway.catchUp();
      backend.send(OK);
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 .*HTTP\/1\.1 400 /s);
      expect(stage.backend.received).not.toContain('third');
    });

    it('nothing after the rejected head gets a response', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(head('GET /..') + head('GET /second'));
      expect((await client.ended()).match(/HTTP\/1\.1/g)).toHaveLength(1);
      expect(stage.backend.received).toBe('');
    });
  });
});
