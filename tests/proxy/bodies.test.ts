import { createHash, randomBytes, randomInt } from 'node:crypto';
import { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { until, untilAtRest } from '../support/until.ts';
import { bodyOf, unchunk } from './support/body-bytes.ts';
import { RawPeer } from './support/raw-peer.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const TEN_MB = 10 * 1024 * 1024;

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('bodies', () => {
  const stage = withGateway();

  it('of 10 MB arrive unchanged at the client, with a length', async () => {
    const body = randomBytes(TEN_MB);
    stage.backend.respond(
      Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${TEN_MB}\r\n\r\n`), body]),
    );
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await until(() => client.length > TEN_MB && bodyOf(client.bytes).length === TEN_MB);
    expect(digest(bodyOf(client.bytes))).toBe(digest(body));
  });

  it.each([0, 1000, 3000, 9000])(
    'arrive unchanged at the client behind a head of %i bytes more',
    async (filled) => {
      const lengths = [1, 700, 2048, 8192, 8193, 30_000, 60_000];
      const bodies = lengths.map((length) => randomBytes(length));
      const filler = 'é'.repeat(filled);
      stage.backend.onConnection((connection) => {
        connection.socket.on('data', async (chunk: Buffer) => {
          const [, number, isSplit] = /^GET \/(\d+)(\?split)?/.exec(chunk.toString('latin1')) ?? [];
          const body = bodies[Number(number)] ?? Buffer.alloc(0);
          const head = `HTTP/1.1 200 OK\r\nX-Filler: ${filler}\r\nContent-Length: ${body.length}\r\n\r\n`;
          const bytes = Buffer.concat([Buffer.from(head, 'latin1'), body]);
          const at = isSplit === undefined ? 0 : head.length - 2;
          if (at > 0) connection.send(bytes.subarray(0, at));
          for (let turn = 0; turn < 10 && at > 0; turn += 1) await nextTurn();
          connection.send(bytes.subarray(at));
        });
      });
      const client = await stage.gateway.connect();
      for (const [number, body] of bodies.entries()) {
        for (const query of ['', '?split']) {
          const before = client.length;
          client.send(stage.gateway.head(`GET /${number}${query}`));
          await until(() => bodyOf(client.bytes.subarray(before)).length === body.length);
          const bytes = client.bytes.subarray(before);
          expect(bytes.toString('latin1')).toContain(`X-Filler: ${filler}\r\n`);
          expect(digest(bodyOf(bytes))).toBe(digest(body));
        }
      }
    },
  );

  it('of 10 MB arrive unchanged at the client, in chunks', async () => {
    const body = randomBytes(TEN_MB);
    const framed = Buffer.concat([
      Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'),
      ...Array.from({ length: 10 }, (_, i) =>
        Buffer.concat([
          Buffer.from(`${(TEN_MB / 10).toString(16)}\r\n`),
          body.subarray((i * TEN_MB) / 10, ((i + 1) * TEN_MB) / 10),
          Buffer.from('\r\n'),
        ]),
      ),
      Buffer.from('0\r\n\r\n'),
    ]);
    stage.backend.respond(framed);
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await until(() => client.length > TEN_MB && client.bytes.subarray(-5).toString() === '0\r\n\r\n');
    expect(digest(unchunk(bodyOf(client.bytes)))).toBe(digest(body));
  });

  it('of 10 MB arrive unchanged at the backend, with a length and in chunks', async () => {
    const body = randomBytes(TEN_MB);
    stage.backend.onConnection((connection) => {
      connection.socket.on('data', () => {
        if (connection.length < TEN_MB) return;
        if (
          bodyOf(connection.bytes).length === TEN_MB ||
          connection.bytes.subarray(-5).toString() === '0\r\n\r\n'
        )
          connection.send(`${OK.replace('200 OK\r\n', '200 OK\r\nConnection: close\r\n')}`);
      });
    });
    const lengthy = await stage.gateway.send(stage.gateway.head('POST /', `Content-Length: ${TEN_MB}`));
    lengthy.send(body);
    await lengthy.until((text) => text.endsWith('ok'));
    expect(digest(bodyOf((await stage.backend.connection(0)).bytes))).toBe(digest(body));

    const chunked = await stage.gateway.send(stage.gateway.head('POST /', 'Transfer-Encoding: chunked'));
    chunked.send(`${TEN_MB.toString(16)}\r\n`);
    chunked.send(body);
    chunked.send('\r\n0\r\n\r\n');
    await chunked.until((text) => text.endsWith('ok'));
    expect(digest(unchunk(bodyOf((await stage.backend.connection(1)).bytes)))).toBe(digest(body));
  });

  it('are held back at the sender when the receiver is slow, both ways', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    const bytes = 64 * chunk.length;
    const sendPieces = (peer: RawPeer) => {
      for (let sent = 0; sent < bytes; sent += chunk.length) peer.send(chunk);
    };
    stage.backend.onConnection((connection) => connection.socket.pause());
    const sender = await stage.gateway.send(stage.gateway.head('POST /', `Content-Length: ${bytes}`));
    sendPieces(sender);
    expect(await untilAtRest(() => sender.socket.writableLength, bytes)).toBeGreaterThan(bytes / 2);
    sender.destroy();
    (await stage.backend.connection(0)).destroy();
    await stage.gateway.settled();

    stage.backend.onConnection(() => {});
    const reader = await stage.gateway.connect();
    reader.socket.pause();
    reader.send(stage.gateway.head('GET /'));
    const source = await stage.backend.connection(1);
    await source.head();
    source.send(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`);
    sendPieces(source);
    expect(await untilAtRest(() => source.socket.writableLength, bytes)).toBeGreaterThan(bytes / 2);
    reader.socket.resume();
    await until(() => reader.length > bytes);
  });

  it.each([20_000, 60_000])(
    'arrive unchanged at a slow client, in chunks of up to %i bytes',
    async (most) => {
      const body = randomBytes(TEN_MB);
      const client = await stage.gateway.connect();
      client.socket.pause();
      client.send(stage.gateway.head('GET /'));
      const source = await stage.backend.connection();
      await source.head();
      source.send(`HTTP/1.1 200 OK\r\nContent-Length: ${TEN_MB}\r\n\r\n`);
      for (let sent = 0; sent < TEN_MB; ) {
        const size = randomInt(1, most);
        source.send(body.subarray(sent, sent + size));
        sent += size;
        // So that each chunk is a read of its own, for as long as the client's system takes it.
        if (source.socket.writableLength === 0) await nextTurn();
      }
      client.socket.resume();
      await until(() => client.length > TEN_MB && bodyOf(client.bytes).length === TEN_MB);
      expect(digest(bodyOf(client.bytes))).toBe(digest(body));
    },
  );

  it('in tiny chunks wait for a slow client once, not once for each chunk', async () => {
    let most = 0;
    const { write } = ServerResponse.prototype;
    ServerResponse.prototype.write = function (this: ServerResponse, ...args: unknown[]): boolean {
      most = Math.max(most, this.listenerCount('drain'));
      return Reflect.apply(write, this, args);
    };
    try {
      stage.backend.onConnection(async (connection) => {
        await connection.head();
        connection.send(
          `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(200_000)}0\r\n\r\n`,
        );
      });
      const client = await stage.gateway.connect();
      client.socket.pause();
      client.send(stage.gateway.head('GET /'));
      await until(() => stage.gateway.proxy.backendLoad.busy === 1);
      client.socket.resume();
      await client.until((text) => text.endsWith('0\r\n\r\n'));
    } finally {
      ServerResponse.prototype.write = write;
    }
    expect(most).toBe(1);
  });

  it('are streamed: head and first event arrive while the backend still sends', async () => {
    stage.backend.respond(
      'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n',
    );
    const client = await stage.gateway.send(stage.gateway.head('GET /events'));
    await client.until((text) => text.includes('\r\n\r\n'));
    const backend = await stage.backend.connection();
    backend.send('9\r\ndata: 1\n\n\r\n');
    await client.until((text) => text.endsWith('\r\n\r\n9\r\ndata: 1\n\n\r\n'));
    backend.send('9\r\ndata: 2\n\n\r\n');
    await client.until((text) => text.endsWith('9\r\ndata: 2\n\n\r\n'));
    backend.send('0\r\n\r\n');
    await client.until((text) => text.endsWith('0\r\n\r\n'));
  });

  it('go up and down at the same time', async () => {
    const client = await stage.gateway.send(stage.gateway.head('POST /', 'Transfer-Encoding: chunked'));
    client.send('3\r\none\r\n');
    const backend = await stage.backend.connection();
    await backend.until((text) => text.includes('one'));
    backend.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nuno\r\n');
    await client.until((text) => text.includes('uno'));
    client.send('3\r\ntwo\r\n');
    await backend.until((text) => text.includes('two'));
    client.send('0\r\n\r\n');
    await backend.until((text) => text.endsWith('0\r\n\r\n'));
    backend.send('3\r\ndos\r\n0\r\n\r\n');
    await client.until((text) => text.endsWith('dos\r\n0\r\n\r\n'));
  });

  it('lose their trailers, both ways, and the connections stay good', async () => {
    stage.backend.onConnection((connection) => {
      let responses = 0;
      connection.socket.on('data', () => {
        for (
          const complete = connection.text.split('0\r\n\r\n').length - 1;
          responses < complete;
          responses += 1
        )
          connection.send(
            'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nX-RateLimit-Limit: 9\r\n\r\n',
          );
      });
    });
    const client = await stage.gateway.connect();
    for (const n of [1, 2]) {
      client.send(
        `${stage.gateway.head('POST /', 'TE: trailers', 'Trailer: x-api-key, X-Sum', 'Transfer-Encoding: chunked')}5\r\nhello\r\n0\r\nX-Sum: 1\r\nx-api-key: forged\r\nX_Api_Key: forged\r\n\r\n`,
      );
      await client.until((text) => text.split('2\r\nok\r\n0\r\n\r\n').length === n + 1);
    }
    expect(client.text).not.toMatch(/x-sum|trailer|Limit: 9/i);
    expect(stage.backend.received).not.toMatch(/x-sum|trailer|forged/i);
    expect(stage.backend.received.match(/\r\n\r\n5\r\nhello\r\n0\r\n\r\n/g)).toHaveLength(2);
    expect(stage.backend.connections).toHaveLength(1);
  });

  it('of requests without one are not invented', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.connect();
    for (const [i, method] of ['GET', 'DELETE', 'OPTIONS'].entries()) {
      client.send(stage.gateway.head(`${method} /`));
      await client.until((text) => text.split('\r\n\r\nok').length === i + 2);
    }
    expect(stage.backend.received).not.toMatch(/content-length|transfer-encoding/i);
    client.send(stage.gateway.head('POST /', 'Content-Length: 0'));
    await client.until((text) => text.split('\r\n\r\nok').length === 5);
    expect(stage.backend.received).toMatch(/\r\ncontent-length: 0\r\n/i);
  });

  it('of GET and DELETE are forwarded too, each as the last one of its connection', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.connect();
    client.send(`${stage.gateway.head('DELETE /', 'Content-Length: 3')}abc`);
    await client.until((text) => text.endsWith('ok'));
    client.send(`${stage.gateway.head('GET /', 'Content-Length: 3')}def`);
    await client.until((text) => text.split('\r\n\r\nok').length === 3);
    const [first, second] = stage.backend.connections;
    expect(first?.text).toMatch(/^DELETE .*\r\nconnection: close\r\n.*\r\nContent-Length: 3\r\n\r\nabc$/s);
    expect(second?.text).toMatch(/^GET .*\r\nconnection: close\r\n.*\r\nContent-Length: 3\r\n\r\ndef$/s);
  });

  it.each(['DELETE', 'OPTIONS'])('in chunks of %s are framed as they were parsed', async (method) => {
    // The proxying library writes a Content-Length to the headers of such requests.
    stage.backend.onConnection((connection) => {
      void connection.until((text) => text.endsWith('0\r\n\r\n')).then(() => connection.send(OK));
    });
    const client = await stage.gateway.send(
      `${stage.gateway.head(`${method} /`, 'Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`,
    );
    await client.until((text) => text.endsWith('ok'));
    expect(stage.backend.received).toMatch(/\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n$/);
    expect(stage.backend.received).not.toMatch(/content-length/i);
  });

  it('compressed ones stay as they are', async () => {
    stage.backend.respond(
      'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00',
    );
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Accept-Encoding: gzip'));
    expect(await client.until((text) => text.endsWith('\x1f\x8b\x08\x00'))).toContain(
      '\r\nContent-Encoding: gzip\r\n',
    );
    expect(stage.backend.received).toContain('\r\nAccept-Encoding: gzip\r\n');
  });
});

describe('an Expect header', () => {
  const stage = withGateway();

  it('gets 100 after authentication and limit, and is not forwarded', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(
      stage.gateway.head('POST /', 'Expect: 100-Continue', 'Content-Length: 5'),
    );
    await client.until((text) => text === 'HTTP/1.1 100 Continue\r\n\r\n');
    client.send('hello');
    const response = await client.until((text) => text.endsWith('ok'));
    expect(response.match(/HTTP\/1\.1 100/g)).toHaveLength(1);
    expect(stage.backend.received).not.toMatch(/expect/i);
    expect(stage.backend.received).toMatch(/\r\n\r\nhello$/);
  });

  it('without a valid key gets no 100, only the rejection', async () => {
    const client = await stage.gateway.send(
      'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n',
    );
    const response = await client.ended();
    expect(response).toMatch(/^HTTP\/1\.1 401 /);
    expect(response).not.toContain('100 Continue');
  });

  it('over the limit gets no 100, only the rejection', async () => {
    await stage.gateway.change({ plan: null });
    stage.backend.respond(OK);
    const { plan } = await import('./support/gateway.ts');
    await stage.gateway.change({ plan: plan(1) });
    const first = await stage.gateway.send(stage.gateway.head('GET /'));
    await first.until((text) => text.endsWith('ok'));
    const client = await stage.gateway.send(
      stage.gateway.head('POST /', 'Expect: 100-continue', 'Content-Length: 5'),
    );
    const response = await client.ended();
    expect(response).toMatch(/^HTTP\/1\.1 429 /);
    expect(response).not.toContain('100 Continue');
  });

  it.each(['Expect: 200-ok', 'Expect: 100-continue, x', 'Expect: 100-continue\r\nExpect: x'])(
    'of %j is 417',
    async (line) => {
      const client = await stage.gateway.send(stage.gateway.head('POST /', line, 'Content-Length: 5'));
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 417 /);
      expect(stage.backend.received).toBe('');
    },
  );
});

describe('an error while the body is still arriving', () => {
  const stage = withGateway();
  it('reaches a client that goes on sending', async () => {
    const client = await RawPeer.connect(stage.gateway.port, true);
    stage.gateway.clients.push(client);
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n');
    const response = await client.ended();
    expect(response).toMatch(/^HTTP\/1\.1 401 .*"missing_api_key"\}$/s);
    expect(response).toMatch(/\r\nConnection: close\r\n/);
    client.send(Buffer.alloc(1_000_000, 'x'));
    await until(() => client.socket.writableLength === 0 || client.socket.destroyed);
    // A reset would have taken a response that was not read yet with it.
    expect(client.ending).toBe('fin');
  });

  it.each([
    ['asked for the end of the connection', 'POST / HTTP/1.1\r\nHost: a\r\nConnection: close'],
    ['speaks HTTP/1.0', 'POST / HTTP/1.0'],
  ])('reaches a client that goes on sending little, where it %s', async (_why, start) => {
    const client = await RawPeer.connect(stage.gateway.port, true);
    stage.gateway.clients.push(client);
    client.send(`${start}\r\nContent-Length: 60000\r\n\r\n`);
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 401 .*"missing_api_key"\}$/s);
    for (let part = 0; part < 6; part += 1) {
      client.send(Buffer.alloc(10_000, 'x'));
      await until(() => client.socket.writableLength === 0 || client.socket.destroyed);
    }
    // The gateway closes only after the whole request.
    client.socket.end();
    await until(() => client.socket.destroyed);
    expect(client.ending).toBe('fin');
  });

  it('keeps the connection when only little is to come', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello');
    await client.until((text) => text.endsWith('}'));
    client.send(stage.gateway.head('GET /'));
    expect(await client.until((text) => text.endsWith('ok'))).toMatch(/^HTTP\/1\.1 401 .*HTTP\/1\.1 200 /s);
  });

  it('of the backend ends the upload and is the response', async () => {
    const client = await stage.gateway.send(stage.gateway.head('POST /', 'Content-Length: 20000000'));
    client.send(Buffer.alloc(100_000, 'x'));
    const backend = await stage.backend.connection();
    await backend.until((text) => text.includes('xxx'));
    backend.send('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig');
    const response = await client.ended();
    expect(client.ending).toBe('fin');
    expect(response).toMatch(/^HTTP\/1\.1 413 .*big$/s);
    expect(response).toMatch(/\r\nConnection: close\r\n/);
    await backend.ended();
  });
});
