import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { type Stage, withGateway } from './support/with-gateway.ts';

/** Longer than any test may take: whatever ends in time, it is the abort that ended it. */
const NEVER_MS = 600_000;
const PATIENT = {
  timeouts: { headMs: NEVER_MS, idleMs: NEVER_MS, keepAliveMs: NEVER_MS },
  backendTimeoutMs: NEVER_MS,
  backendIdleMs: NEVER_MS,
  upgradeIdleMs: NEVER_MS,
};
/** More than the system keeps for two sockets. */
const MUCH = Buffer.alloc(16 * 1024 * 1024, 'x');
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const BEGUN = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello';
const EVENTS =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n';
const ASKS = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: abc',
  'Sec-WebSocket-Version: 13',
];

/** The two ends of a request that is under way. */
interface Ends {
  readonly client: RawPeer;
  readonly backend: RawPeer;
}

/** Brings a request to the point at which one of its ends leaves. */
type Situation = (stage: Stage) => Promise<Ends>;

async function asked({ gateway, backend }: Stage, line: string, ...lines: readonly string[]): Promise<Ends> {
  const client = await gateway.send(gateway.head(line, ...lines));
  return { client, backend: await backend.connection() };
}

async function forwarded(stage: Stage, line: string, ...lines: readonly string[]): Promise<Ends> {
  const ends = await asked(stage, line, ...lines);
  await ends.backend.head();
  return ends;
}

const beforeTheHead: Situation = (stage) => forwarded(stage, 'GET /');

const responding =
  (bytes: string): Situation =>
  async (stage) => {
    const ends = await forwarded(stage, 'GET /');
    ends.backend.send(bytes);
    await ends.client.until((text) => text.includes('hello') || text.includes('data: 1'));
    return ends;
  };

const uploading =
  (length: string, firstBytes: string): Situation =>
  async (stage) => {
    const ends = await asked(stage, 'POST /', length);
    ends.client.send(firstBytes);
    await ends.backend.until((text) => text.includes('hello'));
    return ends;
  };
const uploadingALength = uploading('Content-Length: 10000000', 'hello');
const uploadingChunks = uploading('Transfer-Encoding: chunked', '5\r\nhello\r\n');

const uploadingDuringResponse: Situation = async (stage) => {
  const ends = await uploadingChunks(stage);
  ends.backend.send(BEGUN);
  await ends.client.until((text) => text.endsWith('hello'));
  return ends;
};

/** The first request of its connection is over. */
const onUsedConnections: Situation = async ({ gateway, backend }) => {
  backend.respond(OK);
  const client = await gateway.send(gateway.head('GET /1'));
  await client.until((text) => text.endsWith('ok'));
  const connection = await backend.connection();
  connection.respondToEachHead('');
  client.send(gateway.head('GET /2'));
  await connection.head(1);
  return { client, backend: connection };
};

const unreadResponse: Situation = async ({ gateway, backend }) => {
  backend.respond(
    Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${MUCH.length}\r\n\r\n`), MUCH]),
  );
  const client = await gateway.connect();
  client.socket.pause();
  client.send(gateway.head('GET /'));
  const connection = await backend.connection();
  await atRest(() => connection.socket.writableLength);
  return { client, backend: connection };
};

/** The gateway holds back what the backend does not read. */
const unreadUpload: Situation = async (stage) => {
  const ends = await asked(stage, 'POST /', `Content-Length: ${2 * MUCH.length}`);
  ends.backend.socket.pause();
  ends.client.socket.write(MUCH);
  await atRest(() => ends.client.socket.writableLength);
  return ends;
};

const continued: Situation = async (stage) => {
  const ends = await asked(stage, 'POST /', 'Expect: 100-continue', 'Content-Length: 5');
  await ends.client.until((text) => text.includes('100 Continue'));
  return ends;
};

const askingForAnUpgrade: Situation = (stage) => forwarded(stage, 'GET /', ...ASKS);

/** Resolves when the amount has stayed the same for a while. */
async function atRest(amount: () => number): Promise<void> {
  let last = -1;
  let looks = 0;
  await until(() => {
    const now = amount();
    looks = now === last ? looks + 1 : 0;
    last = now;
    return now > 0 && looks >= 20;
  });
}

describe('a client that leaves ends the request at the backend', () => {
  const stage = withGateway(PATIENT);

  describe.each([
    ['before the head of the response', beforeTheHead],
    ['on connections that were used before', onUsedConnections],
    ['in the body of the response', responding(BEGUN)],
    ['in a silent stream of events', responding(EVENTS)],
    ['in a response that it does not read', unreadResponse],
    ['in an upload with a length', uploadingALength],
    ['in an upload in chunks', uploadingChunks],
    ['in an upload that is being responded to', uploadingDuringResponse],
    ['after the 100 that it waited for', continued],
    ['before the response to an upgrade', askingForAnUpgrade],
  ] as const)('%s', (_when, bring) => {
    it.each(['end', 'destroy', 'reset'] as const)('by %s', async (leave) => {
      const { client, backend } = await bring(stage);
      const recordedBefore = stage.gateway.recorded.length;
      client[leave]();
      expect(await backend.ended()).not.toMatch(/\r\n0\r\n\r\n$/);
      await until(() => stage.gateway.recorded.length > recordedBefore);
      expect(stage.gateway.recorded.slice(recordedBefore)).toMatchObject([{ successful: false }]);
      client.socket.resume();
      await client.ended();
    });
  });
});

describe('a client that resets its connection in an upload that is not read', () => {
  const stage = withGateway({ ...PATIENT, timeouts: { ...PATIENT.timeouts, probeMs: 20 } });

  it('ends the request at the backend', async () => {
    const { client, backend } = await unreadUpload(stage);
    client.reset();
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded).toMatchObject([{ successful: false }]);
    backend.socket.resume();
    await backend.ended();
  });
});

describe('a client that leaves while its request waits for a connection', () => {
  const stage = withGateway({ ...PATIENT, backendConnections: 1 });

  describe.each([
    ['without a body', 'GET /gone', [], ''],
    ['with a body', 'POST /gone', ['Content-Length: 10'], 'hello'],
    ['with a body that waits for a 100', 'POST /gone', ['Expect: 100-continue', 'Content-Length: 10'], ''],
  ] as const)('%s', (_what, line, lines, body) => {
    it.each(['end', 'destroy', 'reset'] as const)(
      'by %s is waited for no longer, and never forwarded',
      async (leave) => {
        const busy = await forwarded(stage, 'GET /busy');
        const gone = await stage.gateway.send(stage.gateway.head(line, ...lines) + body);
        await until(() => stage.gateway.proxy.backendLoad.waiting === 1);
        gone[leave]();
        await until(() => stage.gateway.proxy.backendLoad.waiting === 0);
        await until(() => stage.gateway.recorded.length === 1);
        expect(stage.gateway.recorded).toMatchObject([{ successful: false }]);
        busy.backend.send(OK);
        await busy.client.until((text) => text.endsWith('ok'));
        expect(stage.backend.received).not.toContain('/gone');
      },
    );
  });
});

describe('a client that leaves in a tunnel, or a backend that does', () => {
  const stage = withGateway(PATIENT);
  it.each(['end', 'destroy', 'reset'] as const)('by %s takes the other side with it', async (leave) => {
    for (const [leaving, staying] of [
      ['client', 'backend'],
      ['backend', 'client'],
    ] as const) {
      const index = stage.backend.connections.length;
      stage.backend.respond(
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      );
      const client = await stage.gateway.send(stage.gateway.head('GET /', ...ASKS));
      await client.head();
      const ends = { client, backend: await stage.backend.connection(index) };
      ends[leaving][leave]();
      await ends[staying].ended();
      ends[staying].destroy();
      await until(() => stage.gateway.proxy.backendLoad.tunnels === 0);
    }
  });
});

describe('a backend that dies', () => {
  const stage = withGateway(PATIENT);

  describe.each([
    ['in the body of the response', responding(BEGUN)],
    ['in a silent stream of events', responding(EVENTS)],
    ['in a response to an upload that goes on', uploadingDuringResponse],
  ] as const)('%s', (_when, bring) => {
    it.each(['end', 'reset'] as const)("by %s takes the client's connection with it", async (die) => {
      const { client, backend } = await bring(stage);
      backend[die]();
      const all = await client.ended();
      expect(all).toMatch(/^HTTP\/1\.1 200 .*(hello|data: 1\n\n\r\n)$/s);
      await until(() => stage.gateway.recorded.length === 1);
      expect(stage.gateway.recorded).toMatchObject([{ successful: false }]);
    });
  });

  describe.each([
    ['in an upload with a length', uploadingALength],
    ['in an upload in chunks', uploadingChunks],
    ['after the 100 was sent', continued],
    ['before its response to an upgrade', askingForAnUpgrade],
  ] as const)('%s', (_when, bring) => {
    it.each(['end', 'reset'] as const)('by %s gets 502, and the connection is closed', async (die) => {
      const { client, backend } = await bring(stage);
      backend[die]();
      expect(await client.ended()).toMatch(/HTTP\/1\.1 502 .*\r\nConnection: close\r\n.*"bad_gateway"\}$/s);
      await until(() => stage.gateway.recorded.length === 1);
      expect(stage.gateway.recorded).toMatchObject([{ successful: false }]);
    });
  });

  it.each(['end', 'reset'] as const)('before its response, by %s, gets 502', async (die) => {
    const { client, backend } = await beforeTheHead(stage);
    backend[die]();
    await client.until((text) => /^HTTP\/1\.1 502 .*"bad_gateway"\}$/s.test(text));
    // The connection to the client is as good as before.
    const next = stage.backend.connection(1);
    client.send(stage.gateway.head('GET /2'));
    (await next).send(OK);
    await client.until((text) => text.endsWith('ok'));
  });
});

describe('a CONNECT', () => {
  const stage = withGateway();
  const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n';

  it('whose client resets the connection, at once or after the response, does no harm', async () => {
    for (let i = 0; i < 20; i++) {
      const client = await stage.gateway.send(CONNECT);
      if (i % 2 === 0) await client.until((text) => text.startsWith('HTTP/1.1 405 '));
      client.socket.resetAndDestroy();
    }
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await client.until((text) => text.endsWith('ok'));
  });
});
