import { createServer, type RequestListener, setGlobalProxyFromEnv } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { BlockList, createServer as createTcpServer, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from '@jest/globals';
import { AddressPolicy } from '../../src/events/delivery/address-policy.ts';
import { DeliverySender } from '../../src/events/delivery/send-delivery.ts';
import { systemClock } from '../../src/platform/clock.ts';
import {
  LOCALHOST_CERTIFICATE,
  LOCALHOST_KEY,
  trustLocalhost,
} from '../proxy/support/localhost-certificate.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

const NEVER = new AbortController().signal;
const closings: (() => void)[] = [];
afterEach(() => {
  for (const close of closings.splice(0)) close();
});

async function receiver(respond: RequestListener): Promise<number> {
  const server = createServer(respond);
  closings.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return listenOnLoopback(server);
}

/** A sender that may reach this machine by any name. Its timeout is longer than a test may take, where none is given. */
function sender(timeoutMs = 600_000): DeliverySender {
  const allowedNetworks = new BlockList();
  allowedNetworks.addSubnet('127.0.0.0', 8, 'ipv4');
  const policy = new AddressPolicy({ allowHttp: true, allowedNetworks }, async () => [
    { address: '127.0.0.1', family: 4 },
  ]);
  return new DeliverySender(policy, systemClock, timeoutMs);
}

const outgoing = (port: number, headers = {}) => ({
  url: new URL(`http://hooks.invalid:${port}/in`),
  headers,
  body: '{}',
});

describe('a request to a webhook', () => {
  it('goes to the address that was checked, with the name in Host', async () => {
    let host: string | undefined;
    const port = await receiver((req, res) => {
      host = req.headers.host;
      res.writeHead(204).end();
    });
    const outcome = await sender().send(outgoing(port), NEVER);
    expect(outcome).toMatchObject({ responseStatus: 204, fault: null });
    expect(host).toBe(`hooks.invalid:${port}`);
  });

  it('looks its name up once: an address that changes after the check is not used', async () => {
    const port = await receiver((_req, res) => void res.end());
    const allowedNetworks = new BlockList();
    allowedNetworks.addAddress('127.0.0.2');
    const answers = ['127.0.0.2', '127.0.0.1'];
    let lookUps = 0;
    const policy = new AddressPolicy({ allowHttp: true, allowedNetworks }, async () => {
      lookUps += 1;
      return [{ address: answers.shift() ?? '127.0.0.1', family: 4 }];
    });
    // Nothing listens on the second loopback address: a connection to the first one would succeed.
    const outcome = await new DeliverySender(policy, systemClock).send(outgoing(port), NEVER);
    expect([outcome.responseStatus, outcome.fault, lookUps]).toEqual([null, 'connection_failed', 1]);
  });

  it('is not made to an address that is not allowed any more', async () => {
    let requests = 0;
    const port = await receiver((_req, res) => {
      requests += 1;
      res.end();
    });
    const policy = new AddressPolicy({ allowHttp: true, allowedNetworks: new BlockList() }, async () => [
      { address: '127.0.0.1', family: 4 },
    ]);
    const direct = { ...outgoing(port), url: new URL(`http://127.0.0.1:${port}/`) };
    const faults = [outgoing(port), direct].map((each) =>
      new DeliverySender(policy, systemClock).send(each, NEVER),
    );
    expect((await Promise.all(faults)).map(({ fault }) => fault)).toEqual([
      'address_not_allowed',
      'address_not_allowed',
    ]);
    expect(requests).toBe(0);
  });

  it('follows no redirect', async () => {
    const paths: (string | undefined)[] = [];
    const port = await receiver((req, res) => {
      paths.push(req.url);
      res.writeHead(307, { location: '/elsewhere' }).end();
    });
    expect(await sender().send(outgoing(port), NEVER)).toMatchObject({ responseStatus: 307 });
    expect(paths).toEqual(['/in']);
  });

  it('over TLS resumes the session of the one before, on a new connection to the address checked for it', async () => {
    closings.push(trustLocalhost());
    const sessions: boolean[] = [];
    const server = createHttpsServer({ cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY }, (_req, res) => {
      res.writeHead(204).end();
    }).on('secureConnection', (socket) => sessions.push(socket.isSessionReused()));
    closings.push(() => server.close());
    const each = { ...outgoing(1), url: new URL(`https://localhost:${await listenOnLoopback(server)}/`) };
    const allowedNetworks = new BlockList();
    allowedNetworks.addAddress('127.0.0.1');
    const resolved = ['127.0.0.1', '127.0.0.1', '127.0.0.2'];
    const policy = new AddressPolicy({ allowHttp: true, allowedNetworks }, async () => [
      { address: resolved.shift() ?? '', family: 4 },
    ]);
    const one = new DeliverySender(policy, systemClock);
    const outcomes = [await one.send(each, NEVER), await one.send(each, NEVER), await one.send(each, NEVER)];
    expect(outcomes.map(({ responseStatus, fault }) => responseStatus ?? fault)).toEqual([
      204,
      204,
      'address_not_allowed',
    ]);
    expect(sessions).toEqual([false, true]);
  });

  it('uses no proxy of the environment', async () => {
    closings.push(trustLocalhost());
    const port = await receiver((_req, res) => void res.writeHead(204).end());
    const secure = createHttpsServer({ cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY }, (_req, res) => {
      res.writeHead(204).end();
    });
    closings.push(() => secure.close());
    const url = new URL(`https://localhost:${await listenOnLoopback(secure)}/`);
    const restore = setGlobalProxyFromEnv({
      HTTP_PROXY: 'http://127.0.0.1:1',
      HTTPS_PROXY: 'http://127.0.0.1:1',
    });
    try {
      expect(await sender().send(outgoing(port), NEVER)).toMatchObject({ responseStatus: 204 });
      expect(await sender().send({ ...outgoing(1), url }, NEVER)).toMatchObject({ responseStatus: 204 });
    } finally {
      restore();
    }
  });

  it('reads little of a body that never ends, and ends the connection', async () => {
    let hasClosed: () => void = () => {};
    const closed = new Promise<void>((resolve) => {
      hasClosed = resolve;
    });
    const port = await receiver((_req, res) => {
      res.writeHead(200);
      const write = (): void => {
        while (!res.destroyed && res.write('x'.repeat(65_536)));
      };
      res.on('drain', write).on('close', hasClosed);
      write();
    });
    expect(await sender().send(outgoing(port), NEVER)).toMatchObject({ responseStatus: 200 });
    await closed;
  });

  it('has the status of a response whose body stays away', async () => {
    const port = await receiver((_req, res) => {
      res.writeHead(200);
      res.write('x');
    });
    expect(await sender().send(outgoing(port), NEVER)).toMatchObject({ responseStatus: 200, fault: null });
  });

  it.each([
    ['blanks around it', 'Retry-After: \t 60 \t', '60'],
    ['another one', 'Retry-After: 60\r\nRetry-After: 120', '60'],
    ['nothing in it', 'Retry-After:', ''],
    ['no such header', 'X-A: 60', null],
  ])('has the Retry-After of a response, with %s', async (_what, line, retryAfter) => {
    const server = createTcpServer((socket: Socket) => {
      socket.on('error', () => {}).write(`HTTP/1.1 429 Too Many\r\n${line}\r\nContent-Length: 0\r\n\r\n`);
      closings.push(() => socket.destroy());
    });
    closings.push(() => server.close());
    const outcome = await sender().send(outgoing(await listenOnLoopback(server)), NEVER);
    expect(outcome).toMatchObject({ responseStatus: 429, retryAfter });
  });

  it.each(['100 Continue', '102 Processing', '103 Early Hints'])(
    'has the status of the final response, after an interim %s',
    async (interim) => {
      const final = 'HTTP/1.1 204 No Content\r\n\r\n';
      const server = createTcpServer((socket: Socket) => {
        socket.on('error', () => {}).write(`HTTP/1.1 ${interim}\r\n\r\n`.repeat(2) + final);
        closings.push(() => socket.destroy());
      });
      closings.push(() => server.close());
      const outcome = await sender().send(outgoing(await listenOnLoopback(server)), NEVER);
      expect(outcome).toMatchObject({ responseStatus: 204, fault: null });
    },
  );

  it.each([
    ['ends lines without CR', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    [
      'has a length although it is chunked',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
    ],
    ['goes on with a header in the next line', 'HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n'],
    ['has a control character in a header', 'HTTP/1.1 200 OK\r\nX-A: \u0001\r\n\r\n'],
  ])('has the status of a response that %s', async (_what, response) => {
    const server = createTcpServer((socket: Socket) => {
      socket
        .on('error', () => {})
        .resume()
        .end(response);
      closings.push(() => socket.destroy());
    });
    closings.push(() => server.close());
    const outcome = await sender().send(outgoing(await listenOnLoopback(server)), NEVER);
    expect(outcome).toMatchObject({ responseStatus: 200, fault: null });
  });

  it('is given up at an endpoint that sends one interim response after the other', async () => {
    const server = createTcpServer((socket: Socket) => {
      const interim = 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(20);
      const more = (error?: Error | null): void => {
        if (error == null) socket.write(interim, more);
      };
      socket.on('error', () => {});
      more();
    });
    closings.push(() => server.close());
    const outcome = await sender(600_000).send(outgoing(await listenOnLoopback(server)), NEVER);
    expect(outcome).toMatchObject({ responseStatus: null, fault: 'connection_failed' });
  });

  it('sends the rest of its body to no endpoint that has responded before', async () => {
    const body = 'x'.repeat(32 * 1024 * 1024);
    const outcome = Promise.withResolvers<unknown>();
    const received = Promise.withResolvers<number>();
    const server = createTcpServer((socket: Socket) => {
      let bytes = 0;
      socket.on('data', (chunk) => {
        bytes += chunk.length;
      });
      socket.on('error', () => {}).on('close', () => received.resolve(bytes));
      socket.pause();
      socket.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n');
      void outcome.promise.then(() => socket.resume());
      closings.push(() => socket.destroy());
    });
    closings.push(() => server.close());
    const port = await listenOnLoopback(server);
    outcome.resolve(sender().send({ ...outgoing(port), body }, NEVER));
    expect(await outcome.promise).toMatchObject({ responseStatus: 413, fault: null });
    expect(await received.promise).toBeLessThan(body.length);
  });

  it('does not decompress what it gets', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000));
    const port = await receiver((_req, res) => {
      res.writeHead(200, { 'content-encoding': 'gzip', 'content-length': bomb.length }).end(bomb);
    });
    expect(await sender().send(outgoing(port), NEVER)).toMatchObject({ responseStatus: 200 });
  });

  it.each([
    ['nothing', ''],
    ['interim responses without end', 'HTTP/1.1 102 Processing\r\n\r\n'],
    ['a head without end', 'HTTP/1.1 200 OK\r\nx: y'],
  ])('times out at an endpoint that sends %s', async (_what, bytes) => {
    const server = createTcpServer((socket: Socket) => {
      socket.on('error', () => {}).write(bytes);
      closings.push(() => socket.destroy());
    });
    closings.push(() => server.close());
    const port = await listenOnLoopback(server);
    const outcome = await sender(300).send(outgoing(port), NEVER);
    expect(outcome).toMatchObject({ responseStatus: null, fault: 'timeout' });
  });

  it.each(['before', 'during'])('ends with a stop %s the look-up of its name', async (when) => {
    const stopping = new AbortController();
    if (when === 'before') stopping.abort();
    const policy = new AddressPolicy({ allowHttp: true, allowedNetworks: new BlockList() }, () => {
      setImmediate(() => stopping.abort());
      return new Promise(() => {});
    });
    const outcome = await new DeliverySender(policy, systemClock).send(outgoing(1), stopping.signal);
    expect(outcome).toMatchObject({ responseStatus: null, fault: 'timeout' });
  });

  it('ends with a stop while its endpoint holds up the TLS handshake', async () => {
    const stopping = new AbortController();
    const server = createTcpServer((socket: Socket) => {
      closings.push(() => socket.destroy());
      stopping.abort();
    });
    closings.push(() => server.close());
    const url = new URL(`https://hooks.invalid:${await listenOnLoopback(server)}/`);
    const outcome = await sender().send({ ...outgoing(1), url }, stopping.signal);
    expect(outcome).toMatchObject({ responseStatus: null, fault: 'timeout' });
  });

  it('fails at an endpoint that changes the protocol', async () => {
    const server = createTcpServer((socket: Socket) => {
      const head = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';
      socket.on('error', () => {}).write(head);
      closings.push(() => socket.destroy());
    });
    closings.push(() => server.close());
    const outcome = await sender().send(outgoing(await listenOnLoopback(server)), NEVER);
    expect(outcome).toMatchObject({ responseStatus: null, fault: 'connection_failed' });
  });

  it('fails at a response head that is too large', async () => {
    const server = createTcpServer((socket: Socket) => {
      socket.on('error', () => {}).write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`);
      closings.push(() => socket.destroy());
    });
    closings.push(() => server.close());
    const outcome = await sender().send(outgoing(await listenOnLoopback(server)), NEVER);
    expect(outcome).toMatchObject({ responseStatus: null, fault: 'connection_failed' });
  });

  it.each(['a\r\nx: y', 'a\nb', 'a\0b'])('is not made with the header value %j', async (value) => {
    let requests = 0;
    const port = await receiver((_req, res) => {
      requests += 1;
      res.end();
    });
    const outcome = await sender().send(outgoing(port, { authorization: value }), NEVER);
    expect([outcome.fault, requests]).toEqual(['invalid_request', 0]);
  });
});
