import type { RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RawPeer } from '../proxy/support/raw-peer.ts';
import { MANAGEMENT_PORTS, withGateway } from '../proxy/support/with-gateway.ts';
import { fakeTimeouts } from '../support/fake-timeouts.ts';
import { until, untilAtRest } from '../support/until.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const ASKS = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: abc',
  'Sec-WebSocket-Version: 13',
];

describe.each(MANAGEMENT_PORTS)(
  'requests sent before the responses to those before them, %s',
  (_where, settings) => {
    const stage = withGateway(settings);
    const head = (line: string, ...lines: readonly string[]): string => stage.gateway.head(line, ...lines);

    it('go to the backend one after the other', async () => {
      const client = await stage.gateway.send(
        `${head('POST /1', 'Content-Length: 3')}abc${head('GET /2')}${head('GET /3')}`,
      );
      const backend = await stage.backend.connection();
      for (const n of [1, 2, 3]) {
        await backend.until((text) => text.includes(` /${n} HTTP/1.1`) && text.split('\r\n\r\n').length > n);
        expect(backend.text).not.toContain(` /${n + 1} HTTP/1.1`);
        expect(stage.backend.connections).toHaveLength(1);
        backend.send(OK);
        await client.until((text) => text.split('\r\n\r\nok').length === n + 1);
      }
    });

    it('get their responses in order when some are rejected', async () => {
      const client = await stage.gateway.send(
        `${head('GET /1')}GET /2 HTTP/1.1\r\nHost: a\r\n\r\n${head('GET /3')}`,
      );
      const backend = await stage.backend.connection();
      await backend.head(0);
      backend.send(OK);
      await backend.head(1);
      backend.send(OK);
      const responses = await client.until((text) => text.split('\r\n\r\nok').length === 3);
      expect(responses.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401', 'HTTP/1.1 200']);
    });

    it.each([
      ['a malformed head', 'GET /2 HTTP/1.1\r\nA : b\r\n\r\n', 400],
      ['no HTTP', '\0\0\0', 400],
      ['another version', 'GET /2 HTTP/3.0\r\n\r\n', 505],
    ] as const)('do not lose their responses to %s behind them', async (_what, bytes, status) => {
      const client = await stage.gateway.send(head('GET /1') + bytes);
      const backend = await stage.backend.connection();
      await backend.head();
      await stage.gateway.catchUp();
      expect([client.ending, client.text]).toEqual(['open', '']);
      backend.send(OK);
      const all = await client.ended();
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', `HTTP/1.1 ${status}`]);
    });

    it('do not lose a response that has begun when a malformed head follows', async () => {
      const client = await stage.gateway.send(head('GET /1'));
      const backend = await stage.backend.connection();
      await backend.head();
      backend.send(OK.slice(0, -1));
      await client.until((text) => text.endsWith('\r\n\r\no'));
      client.send('\0\0\0');
      await stage.gateway.catchUp();
      expect(client.ending).toBe('open');
      backend.send('k');
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nokHTTP\/1\.1 400 /s);
    });

    it('are ignored after one with `Connection: close`, which gets its response', async () => {
      const client = await stage.gateway.send(head('GET /1', 'Connection: close') + head('GET /2'));
      const backend = await stage.backend.connection();
      await backend.head();
      backend.send(OK);
      expect((await client.ended()).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
      expect(stage.backend.received).not.toContain('/2');
    });

    it('with a malformed body never reach the backend whole', async () => {
      const client = await stage.gateway.send(
        `${head('GET /1')}${head('POST /2', 'Transfer-Encoding: chunked')}5\r\nhello!\r\n0\r\n\r\n`,
      );
      const backend = await stage.backend.connection();
      await backend.head();
      backend.send(OK);
      const all = await client.ended();
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
      expect(stage.backend.received).not.toContain('/2');
    });

    it.each([
      ['an upgrade', ASKS, 'GET /2'],
      ['CONNECT', [], 'CONNECT a.example:443'],
    ] as const)('close the connection when they are %s', async (_what, lines, line) => {
      const client = await stage.gateway.send(head('GET /1') + head(line, ...lines));
      expect(await client.ended()).toBe('');
      expect(stage.backend.received).not.toContain('/2');
    });

    it('close the connection when they are an upgrade after a request without a key', async () => {
      const client = await stage.gateway.send(`GET /1 HTTP/1.1\r\nHost: a\r\n\r\n${head('GET /2', ...ASKS)}`);
      await client.ended();
      expect(stage.backend.received).toBe('');
    });

    it.each([
      ['a head without Host', 'GET /1 HTTP/1.1\r\n\r\n', ''],
      [
        'a body without a key',
        'POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n',
        '0\r\n\r\n',
      ],
      ['an expectation that is none', 'POST /1 HTTP/1.1\r\nHost: a\r\nExpect: a\r\n\r\n', ''],
    ] as const)(
      'are ignored after the last response, an upgrade too: after %s',
      async (_what, bytes, rest) => {
        const client = await stage.gateway.connect(true);
        client.send(bytes);
        expect(await client.ended()).toMatch(/^HTTP\/1\.1 4/);
        client.send(rest + head('GET /2', ...ASKS));
        await expectNothingForwarded();
        expect(client.text.match(/HTTP\/1\.1 \d+/g)).toHaveLength(1);
      },
    );

    it('are no upgrade in the body of a request that followed one for h2c', async () => {
      const upgrade = head('GET /3', ...ASKS);
      const client = await stage.gateway.connect(true);
      client.send(
        head('GET /1', 'Connection: Upgrade', 'Upgrade: h2c') +
          head('POST /2', `Content-Length: ${upgrade.length}`),
      );
      const backend = await stage.backend.connection();
      await backend.head();
      backend.send(OK);
      await client.ended();
      client.send(upgrade);
      await expectNothingForwarded();
    });

    async function expectNothingForwarded(): Promise<void> {
      await stage.gateway.catchUp();
      await stage.gateway.settled();
      expect(stage.backend.received).not.toMatch(/GET \/[23]/);
    }

    it('are not read without end while a response is due', async () => {
      const client = await stage.gateway.send(head('GET /1'));
      const backend = await stage.backend.connection();
      await backend.head();
      // Far more than the system keeps for two sockets.
      const thousand = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000));
      let taken = 0;
      const send = (): void => {
        client.socket.write(thousand, () => {
          taken += 1;
          if (taken < 1000) send();
        });
      };
      send();
      expect(await untilAtRest(() => taken, -1)).toBeLessThan(1000);
      expect(client.ending).toBe('open');
      backend.send(OK);
      await client.until((text) => text.includes('\r\n\r\nok') && text.split(' 401 ').length > 20);
    });
  },
);

describe('connections that send thousands of requests ahead', () => {
  const LARGE = Buffer.alloc(1_000_000);
  /** Of a paused connection: a chunk or two, and the 192 KiB and a chunk by which is noticed that a client has left. Bytes. */
  const READ_AT_MOST = 6 * 65_536;
  let manage: RequestListener;
  const stage = withGateway({ management: (req, res) => manage(req, res) });

  it('let the request of another connection wait for a bounded number of theirs', async () => {
    const FLOODERS = 12;
    const REQUESTS = 500;
    const one = 'GET /flood HTTP/1.1\r\nHost: a\r\n\r\n';
    const isFlood = ({ path }: { readonly path: string }) => path === '/flood';
    const flooders = await Promise.all(Array.from({ length: FLOODERS }, () => stage.gateway.connect()));
    const honest = await stage.gateway.connect();
    for (const flooder of flooders) flooder.send(one.repeat(REQUESTS));
    for (let n = 1; n <= 10; n += 1) {
      honest.send('GET /honest HTTP/1.1\r\nHost: a\r\n\r\n');
      await honest.until((text) => text.split('HTTP/1.1 401').length === n + 1);
    }
    // A few turns of the event loop for each of the ten, in each of which every flooder has one request served.
    expect(stage.gateway.observed.filter(isFlood).length).toBeLessThan(10 * FLOODERS * 20);
    await until(() => stage.gateway.observed.filter(isFlood).length === FLOODERS * REQUESTS);
  });

  it('are closed when too many wait on all together, and leave room when they are gone', async () => {
    const REQUESTS = 2000;
    const held = 'GET /rate-limit HTTP/1.1\r\nHost: a\r\n\r\n';
    const one = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
    const sockets: Socket[] = [];
    manage = ({ socket }) => sockets.push(socket);
    const flooders: RawPeer[] = [];
    for (let n = 0; n < 40; n += 1) flooders.push(await stage.gateway.send(held + one.repeat(REQUESTS)));
    await until(() => flooders.some(({ ending }) => ending !== 'open'));
    const honest = await stage.gateway.send(one.repeat(10));
    await honest.until((text) => text.split('HTTP/1.1 401').length === 11);
    const open = flooders.filter(({ ending }) => ending === 'open');
    expect(open.length).toBeGreaterThanOrEqual(50_000 / REQUESTS);
    expect(stage.gateway.connectionLimit.flooded).toBe(flooders.length - open.length);

    for (const socket of sockets) socket.destroy();
    await Promise.all(open.map((flooder) => flooder.ended()));
    const many = await stage.gateway.send(one.repeat(REQUESTS));
    await many.until((text) => text.split('HTTP/1.1 401').length === REQUESTS + 1);
    expect(many.ending).toBe('open');
  });

  it('are not read on while large responses to them are taken one by one', async () => {
    const request = 'GET /rate-limit HTTP/1.1\r\nHost: a\r\n\r\n';
    let served = 0;
    let mostWaiting = 0;
    manage = (req, res) => {
      served += 1;
      mostWaiting = Math.max(mostWaiting, req.socket.bytesRead / request.length - served);
      // More than is written at once: Node reads on when it is through.
      res.end(LARGE);
    };
    const client = await stage.gateway.send(request.repeat(100_000));
    await until(() => served >= 30);
    client.destroy();
    expect(mostWaiting).toBeLessThan(READ_AT_MOST / request.length);
  });

  it('have fewer of them parsed where their heads are large', async () => {
    const large = `GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(15_000)}\r\n\r\n`;
    let held: Socket | undefined;
    manage = ({ socket }) => {
      held = socket;
    };
    await stage.gateway.send(`GET /rate-limit HTTP/1.1\r\nHost: a\r\n\r\n${large.repeat(100)}`);
    expect(await untilAtRest(() => held?.bytesRead ?? 0, 0)).toBeLessThan(READ_AT_MOST);
  });

  it('leak nothing when they close while their requests wait', async () => {
    const flooder = await stage.gateway.send('GET /flood HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2000));
    await flooder.until((text) => text.includes('HTTP/1.1 401'));
    flooder.reset();
    await until(() => stage.gateway.proxy.inFlight === 0);
    expect(stage.gateway.observed.length).toBeLessThan(2000);
  });
});

describe('a client with more requests waiting than are read at once', () => {
  let served: Socket | undefined;
  let manage: RequestListener | undefined;
  const stage = withGateway({
    timeouts: { probeMs: 20 },
    // Longer than anything here is waited for.
    backendTimeoutMs: 600_000,
    management: (req, res) => {
      served = req.socket;
      manage?.(req, res);
    },
  });
  const paused = async (): Promise<Socket> => {
    await until(() => served?.isPaused() === true);
    return served as Socket;
  };
  const ONE = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
  const HELD = 'GET /rate-limit HTTP/1.1\r\nHost: a\r\n\r\n';

  beforeEach(() => {
    served = undefined;
    manage = undefined;
  });

  it.each(['end', 'reset'] as const)('ends its request at the backend with its %s', async (leave) => {
    const { gateway, backend } = stage;
    const client = await gateway.send(gateway.head('GET /1') + ONE.repeat(40));
    const upstream = await backend.connection();
    await upstream.head();
    client[leave]();
    await upstream.ended();
    await until(() => gateway.proxy.inFlight === 0);
    expect(backend.received).not.toContain('/2');
  });

  it.each(['end', 'reset'] as const)('ends it too with its %s after two heads of 16 kB', async (leave) => {
    const { gateway, backend } = stage;
    const large = `GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(16_000)}\r\n\r\n`;
    const client = await gateway.send(gateway.head('GET /1') + large.repeat(2));
    const upstream = await backend.connection();
    await upstream.head();
    client[leave]();
    await upstream.ended();
  });

  it.each(['end', 'reset'] as const)('ends it too with its %s in a large body that waits', async (leave) => {
    const { gateway, backend } = stage;
    const upload = gateway.head('POST /2', 'Content-Length: 1000000') + 'x'.repeat(150_000);
    const client = await gateway.send(gateway.head('GET /1') + upload);
    const upstream = await backend.connection();
    await upstream.head();
    client[leave]();
    await upstream.ended();
    expect(backend.received).not.toContain('/2');
  });

  it('ends it too when its end comes behind more than is read at once', async () => {
    const client = await stage.gateway.send(HELD + ONE.repeat(5000));
    client.end();
    await until(() => served?.destroyed === true);
  });

  it('ends it too with its end after a long time in which some requests always waited', async () => {
    const { gateway, backend } = stage;
    const large = `GET /rate-limit HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(6000)}\r\n\r\n`;
    const held: ServerResponse[] = [];
    manage = (_req, res) => held.push(res);
    const client = await gateway.send(large.repeat(2));
    for (let n = 1; n <= 50; n += 1) {
      await until(() => held.length === n);
      client.send(large);
      const sent = (n + 2) * large.length;
      await until(() => held.at(-1)?.socket?.bytesRead === sent);
      held.at(-1)?.end();
    }
    await until(() => held.length === 51);
    const burst = gateway.head('GET /1') + ONE.repeat(40);
    client.send(burst);
    await until(() => held.at(-1)?.socket?.bytesRead === 52 * large.length + burst.length);
    held.at(-1)?.end();
    await until(() => held.length === 52);
    held.at(-1)?.end();
    const upstream = await backend.connection();
    await upstream.head();
    client.end();
    await upstream.ended();
  });

  it('is noticed by its reset behind more than is ever read ahead', async () => {
    const client = await stage.gateway.send(HELD + ONE.repeat(40_000));
    const socket = await paused();
    await untilAtRest(() => socket.bytesRead, 0);
    client.reset();
    await until(() => socket.destroyed);
  });

  it('is read on only up to a bound while it stays', async () => {
    const client = await stage.gateway.send(HELD + ONE.repeat(40_000));
    const socket = await paused();
    await until(() => socket.bytesRead > 3 * 65_536);
    // The first chunk or two, and what is read to notice its end.
    expect(await untilAtRest(() => socket.bytesRead, 0)).toBeLessThan(7 * 65_536);
    expect(client.ending).toBe('open');
  });

  it('is read on only up to a bound while a large body waits', async () => {
    const upload = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n${'x'.repeat(9_000_000)}`;
    const client = await stage.gateway.send(HELD + upload);
    const socket = await paused();
    await until(() => socket.bytesRead > 3 * 65_536);
    expect(await untilAtRest(() => socket.bytesRead, 0)).toBeLessThan(7 * 65_536);
    expect(client.ending).toBe('open');
  });

  it('is read on only as far as there is room for all such clients together', async () => {
    const COUNT = 200;
    const upload = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n${'x'.repeat(600_000)}`;
    const sockets: Socket[] = [];
    manage = ({ socket }) => sockets.push(socket);
    const readOfAll = () => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
    for (let n = 0; n < COUNT; n += 1) await stage.gateway.send(HELD + upload);
    await until(() => sockets.length === COUNT && sockets.some(({ bytesRead }) => bytesRead > 3 * 65_536));
    // The first chunk or two of each, and what is read to notice that they end.
    expect(await untilAtRest(readOfAll, 0)).toBeLessThan(COUNT * 2 * 65_536 + 20 * 1024 * 1024);
  });

  it('gets all its responses when it was looked at meanwhile and stayed', async () => {
    const { gateway, backend } = stage;
    const large = `GET / HTTP/1.1\r\nHost: a\r\nX-Large: ${'x'.repeat(200)}\r\n\r\n`;
    const client = await gateway.send(gateway.head('GET /1') + large.repeat(2500));
    const upstream = await backend.connection();
    await upstream.head();
    await untilAtRest(() => client.socket.writableLength, -1);
    upstream.send(OK);
    await until(() => gateway.observed.length === 2501);
    client.end();
    expect((await client.ended()).split('HTTP/1.1 401')).toHaveLength(2501);
  });
});

describe('a client whose next head is not read while its requests wait', () => {
  const HEAD_MS = 500;
  /** More than the system keeps for a connection. */
  const LARGE = Buffer.alloc(24 * 1024 * 1024);
  const held: ServerResponse[] = [];
  const stage = withGateway({
    timeouts: { headMs: HEAD_MS, probeMs: 600_000 },
    management: (_req, res) => held.push(res),
  });
  const ONE = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
  const HELD = 'GET /rate-limit HTTP/1.1\r\nHost: a\r\n\r\n';

  beforeEach(() => {
    held.length = 0;
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Resolves when each head that had begun before took longer than it may. Timers are those of the test from then on. */
  async function headTimeout(): Promise<void> {
    const slow = await stage.gateway.send('GET / HT');
    expect(await slow.ended()).toMatch(/^HTTP\/1\.1 408 /);
    fakeTimeouts();
  }

  /** A client with 40 requests that wait, and the first bytes of a head behind them. */
  async function waiting(start: string): Promise<RawPeer> {
    const sent = HELD + ONE.repeat(40) + start;
    const client = await stage.gateway.send(sent);
    await until(() => held[0]?.socket?.isPaused() === true && held[0].socket.bytesRead === sent.length);
    await headTimeout();
    return client;
  }

  const responses = (count: number) => (text: string) => text.split(' 401 ').length === count + 1;

  it('gets all its responses, however long these take', async () => {
    const client = await waiting(ONE.slice(0, 10));
    client.send(ONE.slice(10) + ONE.repeat(10));
    held[0]?.end();
    await client.until(responses(51));
    jest.advanceTimersByTime(HEAD_MS);
    client.send(ONE);
    await client.until(responses(52));
  });

  it('gets 408 behind them when the rest does not come in time once it is read', async () => {
    const client = await waiting(ONE.slice(0, 10));
    held[0]?.end();
    await client.until(responses(40));
    client.send(ONE.slice(10, 12));
    await stage.gateway.catchUp();
    jest.advanceTimersByTime(HEAD_MS - 1);
    await stage.gateway.catchUp();
    expect(client.ending).toBe('open');
    jest.advanceTimersByTime(1);
    expect(await client.ended()).toMatch(/ 401 .*HTTP\/1\.1 408 .*"request_timeout"/s);
  });

  it('keeps the upgrade that this head becomes', async () => {
    const { gateway, backend } = stage;
    const upgrade = gateway.head('GET /2', ...ASKS);
    const client = await waiting(upgrade.slice(0, 10));
    held[0]?.end();
    await client.until(responses(40));
    client.send(upgrade.slice(10));
    const upstream = await backend.connection();
    await upstream.head();
    upstream.send('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await client.until((text) => text.includes(' 101 '));
    jest.advanceTimersByTime(HEAD_MS);
    upstream.send('last words');
    upstream.end();
    expect(await client.ended()).toMatch(/\r\n\r\nlast words$/);
  });

  it('gets them too when it takes a large response slowly meanwhile', async () => {
    const client = await stage.gateway.send(HELD);
    await until(() => held.length === 1);
    const socket = held[0]?.socket;
    client.socket.pause();
    held[0]?.end(LARGE);
    client.send(ONE + ONE.slice(0, 10));
    await until(() => socket?.isPaused() === true);
    await headTimeout();
    client.send(ONE.slice(10));
    client.socket.resume();
    await until(() => client.length > LARGE.length);
    await client.until(responses(2));
  });
});

describe('a response to HTTP/1.0 whose body ends with the connection', () => {
  const stage = withGateway();

  it.each([
    ['an upgrade', 'GET /2', ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: abc']],
    ['a CONNECT', 'CONNECT a:1', []],
  ] as const)('never looks complete when %s behind it cuts it', async (_what, line, lines) => {
    const { gateway, backend } = stage;
    const first = gateway.head('GET /1', 'Connection: keep-alive').replace('HTTP/1.1', 'HTTP/1.0');
    const client = await gateway.send(first);
    const upstream = await backend.connection();
    await upstream.head();
    upstream.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n');
    await client.until((text) => text.endsWith('first'));
    client.send(gateway.head(line, ...lines));
    await client.ended();
    expect(client.ending).toBe('reset');
  });
});
