import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WebSocket, WebSocketServer } from 'ws';
import { Admin } from '../support/admin.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import type { RunningGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
let admins: readonly Admin[];
/** What the backend was sent as `x-api-key`, in order. */
const presented: (string | undefined)[] = [];

beforeAll(async () => {
  fleet = await startInProcessFleet(2, { CORS_ALLOWED_ORIGINS: 'https://app.example' }, (req, res) => {
    presented.push(req.headers['x-api-key']?.toString());
    res.setHeader('Tollgate-Key-Expires', 'never');
    res.end('ok');
  });
  admins = fleet.replicas.map(({ url }) => new Admin(url));
});
afterAll(() => fleet?.stop());

interface Seen {
  readonly status: number;
  readonly code: string | undefined;
  readonly expires: string | null;
  readonly remaining: string | null;
}

async function use(replica: number, secret: string): Promise<Seen> {
  const response = await fetch(fleet.replicas[replica]?.url ?? '', {
    headers: { authorization: `Bearer ${secret}` },
  });
  const text = await response.text();
  return {
    status: response.status,
    code: text.startsWith('{') ? JSON.parse(text).code : undefined,
    expires: response.headers.get('tollgate-key-expires'),
    remaining: response.headers.get('x-ratelimit-remaining'),
  };
}

async function useEverywhere(secret: string): Promise<readonly (number | string | undefined)[]> {
  const seen = await Promise.all(fleet.replicas.map((_replica, index) => use(index, secret)));
  return seen.map(({ status, code }) => code ?? status);
}

async function post(replica: number, path: string, body: object) {
  const response = await admins[replica]?.call('POST', path, body);
  if (response === undefined) throw new Error('no such replica');
  return response;
}

async function rotate(replica: number, id: string, graceSeconds: number) {
  const { status, body } = await post(replica, `/consumer-api-key/${id}/rotate`, { graceSeconds });
  expect(status).toBe(200);
  return body;
}

describe('a key that is rotated on one of two replicas', () => {
  it('works with both secrets on both, with the next request, in the same window', async () => {
    const { id, secret } = await fleet.admin.makeKey('rotated');
    expect(await useEverywhere(secret)).toEqual([200, 200]);
    const { secret: next, previousValidUntil } = await rotate(0, id, 3600);
    const seen = [await use(1, secret), await use(1, next), await use(0, secret), await use(0, next)];
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(seen.map(({ expires }) => expires)).toEqual([previousValidUntil, null, previousValidUntil, null]);
    expect(seen.map(({ remaining }) => Number(remaining))).toEqual([997, 996, 995, 994]);
    expect(presented.slice(-4)).toEqual([secret, next, secret, next]);
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 6);
  });

  it('tells a page that uses the previous secret until when that is valid', async () => {
    const { id, secret } = await fleet.admin.makeKey('in a page');
    await rotate(0, id, 3600);
    const response = await fetch(fleet.replicas[0]?.url ?? '', {
      headers: { authorization: `Bearer ${secret}`, origin: 'https://app.example' },
    });
    await response.text();
    const exposed = response.headers.get('access-control-expose-headers')?.toLowerCase().split(', ');
    expect(exposed).toContain('tollgate-key-expires');
    expect(response.headers.get('tollgate-key-expires')).toMatch(/^\d{4}-\d\d-\d\dT/);
  });

  it('shows on each when the previous secret was used last on the other', async () => {
    const { id, secret } = await fleet.admin.makeKey('still in use');
    expect((await use(0, secret)).status).toBe(200);
    const { secret: next } = await rotate(0, id, 3600);
    expect((await use(1, next)).status).toBe(200);
    expect((await fleet.admin.detail(id)).rotation.previousLastUsedAt).toBeNull();
    const beforeMs = Math.floor(Date.now() / 1000) * 1000;
    expect((await use(1, secret)).status).toBe(200);
    const lastUsedMs = async () => Date.parse((await fleet.admin.detail(id)).rotation.previousLastUsedAt);
    await until(async () => (await lastUsedMs()) >= beforeMs);
    const firstMs = await lastUsedMs();
    await until(() => Date.now() >= firstMs + 1000);
    expect((await use(1, secret)).status).toBe(200);
    await until(async () => (await lastUsedMs()) > firstMs);
  });

  it('without grace rejects the previous secret on both, with the next request', async () => {
    const { id, secret } = await fleet.admin.makeKey('leaked');
    expect(await useEverywhere(secret)).toEqual([200, 200]);
    const { secret: next } = await rotate(0, id, 0);
    expect(await useEverywhere(secret)).toEqual(['invalid_api_key', 'invalid_api_key']);
    expect(await useEverywhere(next)).toEqual([200, 200]);
  });

  it('rejects the secret that is not kept on both, with the next request', async () => {
    for (const keep of ['new', 'previous']) {
      const { id, secret } = await fleet.admin.makeKey(`kept ${keep}`);
      const { secret: next } = await rotate(0, id, 3600);
      expect(await useEverywhere(secret)).toEqual([200, 200]);
      expect(await useEverywhere(next)).toEqual([200, 200]);
      expect((await post(1, `/consumer-api-key/${id}/end-rotation`, { keep })).status).toBe(200);
      const [kept, dropped] = keep === 'new' ? [next, secret] : [secret, next];
      expect(await useEverywhere(dropped)).toEqual(['invalid_api_key', 'invalid_api_key']);
      expect(await useEverywhere(kept)).toEqual([200, 200]);
      expect((await use(0, kept)).expires).toBeNull();
    }
  });

  it('rejects the previous secret from the instant on that was named', async () => {
    let seen: readonly (number | string | undefined)[] = [];
    let secret = '';
    let id = '';
    let untilMs = 0;
    const isInTime = async () => {
      ({ id, secret } = await fleet.admin.makeKey('short grace'));
      expect(await useEverywhere(secret)).toEqual([200, 200]);
      untilMs = Date.parse((await rotate(0, id, 1)).previousValidUntil);
      seen = await useEverywhere(secret);
      return Date.now() < untilMs;
    };
    // With another key, if the grace was over before both responses.
    await until(isInTime);
    expect(seen).toEqual([200, 200]);
    await until(() => Date.now() >= untilMs);
    expect(await useEverywhere(secret)).toEqual(['invalid_api_key', 'invalid_api_key']);
    expect((await fleet.admin.detail(id)).rotation).toBeNull();
  });

  it('is rotated once by two calls at the same time, one on each', async () => {
    const { id, secret } = await fleet.admin.makeKey('twice');
    const responses = await Promise.all(
      [0, 1].map((replica) => post(replica, `/consumer-api-key/${id}/rotate`, { graceSeconds: 3600 })),
    );
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    const won = responses.find(({ status }) => status === 200)?.body.secret;
    expect((await fleet.admin.detail(id)).secret).toBe(won);
    expect(await useEverywhere(won)).toEqual([200, 200]);
    expect(await useEverywhere(secret)).toEqual([200, 200]);
  });

  it('is gone with both secrets when it is deleted', async () => {
    const { id, secret } = await fleet.admin.makeKey('deleted');
    const { secret: next } = await rotate(0, id, 3600);
    expect(await useEverywhere(secret)).toEqual([200, 200]);
    expect(await useEverywhere(next)).toEqual([200, 200]);
    await fleet.admin.deleteKey(id);
    for (const each of [secret, next])
      expect(await useEverywhere(each)).toEqual(['invalid_api_key', 'invalid_api_key']);
  });

  it('rejects no request with either secret while requests go on', async () => {
    await fleet.admin.makePlan('busy', 1_000_000_000, '1 day');
    const { id, secret } = await fleet.admin.makeKey('busy', 'busy');
    let current = secret;
    let isOver = false;
    const statuses = new Set<number>();
    const inUse: string[] = [];
    const client = async (replica: number, index: number): Promise<void> => {
      while (!isOver) {
        inUse[index] = current;
        statuses.add((await use(replica, current)).status);
      }
    };
    const clients = Promise.all([0, 1, 0, 1].map(client));
    for (let round = 0; round < 5; round += 1) {
      current = (await rotate(round % 2, id, 3600)).secret;
      // The rotation may be ended when no client uses the previous secret any more.
      await until(() => inUse.every((used) => used === current));
      const ended = await post(1 - (round % 2), `/consumer-api-key/${id}/end-rotation`, { keep: 'new' });
      expect(ended.status).toBe(200);
    }
    isOver = true;
    await clients;
    expect(statuses).toEqual(new Set([200]));
  });
});

describe('open WebSockets of a key that is rotated', () => {
  let backend: WebSocketServer;
  let gateway: RunningGateway;
  beforeAll(async () => {
    backend = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await once(backend, 'listening');
    const { port } = backend.address() as AddressInfo;
    gateway = await startInProcess({ ...fleet.environment, BACKEND_URL: `http://127.0.0.1:${port}` });
  });
  afterAll(async () => {
    await gateway?.stop();
    for (const client of backend.clients) client.terminate();
    backend.close();
  });

  async function open(secret: string): Promise<WebSocket> {
    const socket = new WebSocket(gateway.url.replace('http', 'ws'), {
      headers: { authorization: `Bearer ${secret}` },
    });
    await once(socket, 'open');
    return socket;
  }

  interface Ending {
    readonly closedAtMs: Promise<number>;
  }

  /** Opens one whose end is awaited. */
  async function openEnding(secret: string): Promise<Ending> {
    const socket = await open(secret);
    return { closedAtMs: once(socket, 'close').then(() => Date.now()) };
  }

  async function respond(socket: WebSocket): Promise<void> {
    socket.ping();
    await once(socket, 'pong');
  }

  it('are closed when their secret ends, and stay open with the one that is kept', async () => {
    const { id, secret: previous } = await fleet.admin.makeKey('with sockets');
    const { secret } = await rotate(0, id, 3600);
    const [ended, kept] = [await open(previous), await open(secret)];
    const closed = once(ended, 'close');
    const { status } = await post(1, `/consumer-api-key/${id}/end-rotation`, { keep: 'new' });
    expect(status).toBe(200);
    await closed;
    await respond(kept);
    kept.terminate();
  });

  it.each([
    ['before', 'opened before the rotation'],
    ['after', 'opened during the grace'],
  ])('are closed when the grace is over, when they were opened %s the rotation', async (when, name) => {
    let secret = '';
    let untilMs = 0;
    let ending: Ending | undefined;
    // With another key, if the grace was over before the response.
    while (ending === undefined) {
      const { id, secret: previous } = await fleet.admin.makeKey(name);
      const early = when === 'before' ? await openEnding(previous) : undefined;
      const rotated = await rotate(0, id, 5);
      secret = rotated.secret;
      untilMs = Date.parse(rotated.previousValidUntil);
      ending =
        early ??
        (await openEnding(previous).catch((error: unknown) => {
          if (Date.now() < untilMs) throw error;
          return undefined;
        }));
    }
    const kept = await open(secret);
    expect(await ending.closedAtMs).toBeGreaterThanOrEqual(untilMs);
    await respond(kept);
    kept.terminate();
  });
});
