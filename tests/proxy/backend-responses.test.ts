import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe("the backend's response", () => {
  const stage = withGateway();

  async function responseTo(line: string, bytes: string): Promise<string> {
    stage.backend.respond(bytes);
    const client = await stage.gateway.send(stage.gateway.head(line, 'Connection: close'));
    return client.ended();
  }

  describe('interim responses', () => {
    it('103 is forwarded, other 1xx are dropped, also an unexpected 100', async () => {
      const response = await responseTo(
        'GET /',
        `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nConnection: Hidden\r\nHidden: x\r\nKeep-Alive: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${OK}`,
      );
      expect(response).toMatch(
        /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK\r\n.*ok$/s,
      );
    });

    it('a 100 that arrives in several chunks is dropped too', async () => {
      stage.backend.onConnection(async (connection) => {
        await connection.head();
        for (const part of [
          'HTTP/1.',
          '1 100 Con',
          'tinue\r\n\r',
          '\nHTTP/1.1 102 Pro',
          'cessing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTT',
          `P/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHTTP/1.1 100 `,
        ]) {
          connection.send(part);
          // The gateway reads in the same process: it has had its turn before the next one is sent.
          for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
        }
      });
      const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nHTTP\/1\.1 100 $/s);
    });

    it('an HTTP/1.0 client gets no interim response', async () => {
      stage.backend.respond(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`);
      const client = await stage.gateway.send(stage.gateway.head('GET /').replace('HTTP/1.1', 'HTTP/1.0'));
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    });

    it.each([
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      `HTTP/1.1 101 Switching Protocols\r\n\r\n${OK}`,
    ])('an unasked 101 is 502: %j', async (bytes) => {
      expect(await responseTo('GET /', bytes)).toMatch(/^HTTP\/1\.1 502 .*"bad_gateway"\}$/s);
    });
  });

  describe('responses without a body', () => {
    it('HEAD has no body, whatever the backend sends, and keeps its length', async () => {
      const response = await responseTo('HEAD /', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello');
      expect(response).toMatch(/\r\nContent-Length: 5\r\n/);
      expect(response).toMatch(/\r\n\r\n$/);
      expect(response).not.toContain('hello');
    });

    it('a chunked response to HEAD has no body', async () => {
      const response = await responseTo('HEAD /', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      expect(response).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n$/s);
    });

    it('204 has no body and no length', async () => {
      const response = await responseTo('GET /', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello');
      expect(response).toMatch(/^HTTP\/1\.1 204 No Content\r\n/);
      expect(response).not.toMatch(/content-length|transfer-encoding|hello/i);
    });

    it('304 has no body', async () => {
      const response = await responseTo(
        'GET /',
        'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 5\r\n\r\nhello',
      );
      expect(response).toMatch(/^HTTP\/1\.1 304 Not Modified\r\n/);
      expect(response).toContain('ETag: "x"');
      expect(response).not.toMatch(/transfer-encoding|hello/i);
    });

    it('bytes that a backend sends after a 204 become no response', async () => {
      stage.backend.onConnection((connection, index) =>
        connection.respondToEachHead(
          index === 0
            ? 'HTTP/1.1 204 No Content\r\nContent-Length: 40\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad'
            : OK,
        ),
      );
      const client = await stage.gateway.send(stage.gateway.head('GET /'));
      await client.until((text) => text.includes('\r\n\r\n'));
      client.send(stage.gateway.head('GET /'));
      const all = await client.until((text) => text.endsWith('ok'));
      expect(all).not.toContain('bad');
    });
  });

  describe('malformed responses are 502 with a correct length', () => {
    it.each<readonly [string, string]>([
      ['a folded field', 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nok'],
      ['a folded length', 'HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nok'],
      ['bare LFs', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
      ['a bare LF after a field', 'HTTP/1.1 200 OK\r\nA: b\nContent-Length: 2\r\n\r\nok'],
      ['a bare CR in a field', 'HTTP/1.1 200 OK\r\nA: b\rc\r\nContent-Length: 2\r\n\r\nok'],
      ['NUL in a field', 'HTTP/1.1 200 OK\r\nA: b\0c\r\nContent-Length: 2\r\n\r\nok'],
      ['a space before the colon', 'HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok'],
      ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!'],
      ['a list of lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok'],
      [
        'length and coding',
        'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      ],
      [
        'coding and length',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      ],
      ['another coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok'],
      [
        'a coding before chunked',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      ],
      ['a status of four digits', 'HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok'],
      ['a status below 100', 'HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok'],
      [
        'chunked twice',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      ],
      ['a coding in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
      ['RTSP', 'RTSP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
      ['ICE', 'ICE/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
      ['HTTP/2.0', 'HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
      ['HTTP/0.9', 'HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\nok'],
      [
        'RTSP behind an interim response',
        'HTTP/1.1 100 Continue\r\n\r\nRTSP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok',
      ],
      ['a line end before the status line', '\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
      ['no HTTP', 'hello there\r\n\r\n'],
      ['an oversized field', `HTTP/1.1 200 OK\r\nA: ${'x'.repeat(20_000)}\r\nContent-Length: 2\r\n\r\nok`],
      [
        'an oversized head',
        `HTTP/1.1 200 OK\r\n${'aaaaaaaa: bbbbbbbb\r\n'.repeat(1100)}Content-Length: 2\r\n\r\nok`,
      ],
      [
        'a malformed chunk that comes with the head',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n',
      ],
      [
        'a malformed second chunk that comes with the head',
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n',
      ],
    ])('%s', async (_what, bytes) => {
      const response = await responseTo('GET /', bytes);
      expect(response).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/);
      const [head = '', body = ''] = response.split('\r\n\r\n');
      expect(head).toContain(`\r\nContent-Length: ${body.length}`);
      expect(JSON.parse(body)).toEqual({ error: 'The backend gave no valid response.', code: 'bad_gateway' });
      expect(stage.gateway.observed.at(-1)).toMatchObject({
        status: 502,
        outcome: 'backend_error',
        errorCode: 'bad_gateway',
        bodyBytes: 0,
      });
    });

    it('a reason with control characters is replaced, not passed on', async () => {
      expect(await responseTo('GET /', 'HTTP/1.1 200 a\x01b\r\nContent-Length: 2\r\n\r\nok')).toMatch(
        /^HTTP\/1\.1 (200 OK|502 )/,
      );
    });
  });

  describe('a backend that dies in mid-body cuts the client', () => {
    it.each<readonly [string, string]>([
      ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello'],
      ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'],
      ['in a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhello'],
    ])('%s, by closing or by a reset', async (_what, bytes) => {
      for (const way of ['end', 'reset'] as const) {
        stage.backend.onConnection((connection) => connection.respondToEachHead(bytes));
        const index = stage.backend.connections.length;
        const client = await stage.gateway.send(stage.gateway.head('GET /'));
        await client.until((text) => text.includes('hello'));
        (await stage.backend.connection(index))[way]();
        const all = await client.ended();
        expect(all).not.toMatch(/0\r\n\r\n$/);
        expect(all).not.toContain('HTTP/1.1 502');
        const count = way === 'end' ? 1 : 2;
        await until(() => stage.gateway.observed.length === count);
        expect(stage.gateway.observed.at(-1)).toMatchObject({ status: 200, outcome: 'truncated' });
        expect(stage.gateway.recorded.at(-1)).toMatchObject({ successful: false });
      }
    });

    it('by a reset, where the body would end with the connection', async () => {
      stage.backend.respond('HTTP/1.1 200 OK\r\n\r\nhello');
      const client = await stage.gateway.send(stage.gateway.head('GET /'));
      await client.until((text) => text.includes('hello'));
      (await stage.backend.connection()).reset();
      expect(await client.ended()).not.toMatch(/0\r\n\r\n$/);
      await until(() => stage.gateway.recorded.length === 1);
      expect(stage.gateway.recorded.at(-1)).toMatchObject({ successful: false });
    });

    it('by a reset of ours, where only that tells an HTTP/1.0 client', async () => {
      stage.backend.respond('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
      const client = await stage.gateway.send(stage.gateway.head('GET /').replace('HTTP/1.1', 'HTTP/1.0'));
      await client.until((text) => text.endsWith('hello'));
      (await stage.backend.connection()).end();
      await client.ended();
      expect(client.ending).toBe('reset');
    });

    it('a body that ends with the connection in order is complete', async () => {
      stage.backend.onConnection(async (connection) => {
        await connection.head();
        connection.send('HTTP/1.1 200 OK\r\n\r\nhello');
        connection.end();
      });
      const client = await stage.gateway.send(stage.gateway.head('GET /'));
      await client.until((text) => text.endsWith('5\r\nhello\r\n0\r\n\r\n'));
      await until(() => stage.gateway.recorded.length === 1);
      expect(stage.gateway.recorded.at(-1)).toMatchObject({ successful: true });
    });

    it('a slow client gets a complete body whole after the backend has closed', async () => {
      const body = Buffer.alloc(8 * 1024 * 1024, 'x');
      stage.backend.onConnection(async (connection) => {
        await connection.head();
        connection.send('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n');
        connection.send(body);
        connection.end();
      });
      const client = await stage.gateway.connect();
      client.socket.pause();
      client.send(stage.gateway.head('GET /', 'Connection: close'));
      const backend = await stage.backend.connection();
      // Buffers of the system may take all of it.
      await until(() => backend.socket.writableLength > 0 || backend.socket.writableFinished);
      client.socket.resume();
      await client.ended();
      expect(client.text.match(/x{1000}/g)?.length).toBeGreaterThanOrEqual(
        Math.floor(body.length / 1000) - 500,
      );
      expect(client.text).toMatch(/x\r\n0\r\n\r\n$/);
    });
  });

  describe('a response without a request', () => {
    it('sent behind another response is never the response to the next request', async () => {
      stage.backend.onConnection((connection, index) =>
        connection.respondToEachHead(
          index === 0
            ? `${OK}HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad`
            : 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood',
        ),
      );
      const client = await stage.gateway.send(stage.gateway.head('GET /one'));
      await client.until((text) => text.includes('ok'));
      client.send(stage.gateway.head('GET /two'));
      const all = await client.until((text) => text.endsWith('good') || text.endsWith('bad'));
      expect(all).not.toContain('bad');
    });

    it('sent on an unused connection is never the response to the next request', async () => {
      stage.backend.onConnection((connection, index) =>
        connection.respondToEachHead(index === 0 ? OK : 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood'),
      );
      const client = await stage.gateway.send(stage.gateway.head('GET /one'));
      await client.until((text) => text.includes('ok'));
      const first = await stage.backend.connection();
      first.send('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad');
      client.send(stage.gateway.head('GET /two'));
      const all = await client.until((text) => text.endsWith('good') || text.endsWith('bad'));
      expect(all).not.toContain('bad');
    });
  });

  it.each([301, 302, 303, 307, 308])('a redirect (%i) is forwarded, not followed', async (status) => {
    const response = await responseTo(
      'GET /moved',
      `HTTP/1.1 ${status} Moved\r\nLocation: ${stage.backend.url}/other?x\r\nContent-Length: 0\r\n\r\n`,
    );
    expect(response).toContain(`HTTP/1.1 ${status} Moved\r\n`);
    expect(response).toContain(`\r\nLocation: ${stage.backend.url}/other?x\r\n`);
    expect(stage.backend.received.match(/GET \/(?:moved|other)/g)).toEqual(['GET /moved']);
  });

  it('in HTTP/1.0 is a response like any other', async () => {
    stage.backend.onConnection(async (connection) => {
      await connection.head();
      connection.send('HTTP/1.0 200 OK\r\n\r\nhello');
      connection.end();
    });
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    expect(await client.until((text) => text.endsWith('0\r\n\r\n'))).toContain('5\r\nhello\r\n');
  });

  it.each(['Content-Disposition', 'X-Other'])(
    'has the bytes of its fields as they were sent: %s',
    async (name) => {
      // UTF-8, one character for each byte.
      const value = Buffer.from('attachment; filename="äöü €.txt"').toString('latin1');
      for (const fields of [
        `Content-Length: 2\r\n${name}: ${value}`,
        `${name}:\t${value} \r\nContent-Length: 2`,
      ]) {
        const response = await responseTo('GET /', `HTTP/1.1 200 OK\r\n${fields}\r\n\r\nok`);
        expect(response).toContain(`\r\n${name}: ${value}\r\n`);
        expect(response).toMatch(/\r\n\r\nok$/);
      }
    },
  );

  it.each(['', 'Expect: y\r\n'])(
    'has the bytes of its fields also where its body comes later: %j',
    async (field) => {
      const fields = `${field}X-A: caf\xe9\r\nContent-Disposition: attachment; filename="\xc3\xa9"\r\n`;
      stage.backend.onConnection(async (connection) => {
        await connection.head();
        connection.send(`HTTP/1.1 200 OK\r\n${fields}Content-Length: 2\r\n\r\n`);
      });
      const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
      expect(`${await client.head()}\r\n`).toContain(`\r\n${fields}`);
      (await stage.backend.connection()).send('ok');
      expect(await client.ended()).toMatch(/\r\n\r\nok$/);
    },
  );

  it('without a Date gets one, with one keeps it', async () => {
    expect(await responseTo('GET /', OK)).toMatch(/\r\nDate: /);
    const response = await responseTo(
      'GET /',
      'HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n',
    );
    expect(response.match(/\r\nDate: /g)).toHaveLength(1);
    expect(response).toContain('1970');
  });
});

describe('a backend that stops sending in mid-body', () => {
  const stage = withGateway({ backendIdleMs: 500 });
  it('is treated like one that dies there', async () => {
    stage.backend.respond('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello');
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await client.until((text) => text.includes('hello'));
    expect(await client.ended()).toMatch(/hello$/);
    await until(() => stage.gateway.observed.length === 1);
    expect(stage.gateway.observed.at(-1)).toMatchObject({ outcome: 'truncated' });
    await (await stage.backend.connection()).ended();
  });
});

describe('hints without end', () => {
  const stage = withGateway();
  it('are not kept for a client that does not read them', async () => {
    const hint = Buffer.from(`HTTP/1.1 103 Early Hints\r\nLink: <${'x'.repeat(10_000)}>\r\n\r\n`);
    const hints = 5000;
    const client = await stage.gateway.connect();
    client.socket.pause();
    client.send(stage.gateway.head('GET /'));
    const backend = await stage.backend.connection();
    await backend.head();
    for (let i = 0; i < hints; i += 1) backend.send(hint);
    backend.send(OK);
    await stage.gateway.settled();
    client.socket.resume();
    await until(() => client.bytes.subarray(-6).toString() === '\r\n\r\nok');
    expect(client.length).toBeLessThan((hints * hint.length) / 2);
  });
});
