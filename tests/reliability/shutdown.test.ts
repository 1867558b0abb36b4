import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { startGateway } from '../support/gateway.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { readyz } from './support/probe.ts';

let fleet: Fleet;
let key: { readonly id: string; readonly secret: string };
/** Requests for `/held` wait here. */
const held = new Set<ServerResponse>();

beforeAll(async () => {
  fleet = await startInProcessFleet(1, { SHUTDOWN_DRAIN_MS: '60000' }, (req, res) => {
    if (req.url !== '/held') {
      res.end('ok');
      return;
    }
    held.add(res);
    res.once('close', () => held.delete(res));
  });
  await fleet.admin.makePlan('roomy', 1_000_000, 'day');
  key = await fleet.admin.makeKey('shutdown', 'roomy');
});
afterAll(() => fleet?.stop());

function request(path = '/'): string {
  return `GET ${path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${key.secret}\r\n\r\n`;
}

/** A path of the management interface, where a consumer's key is rejected. */
const MANAGEMENT = '/consumer-api-key';

/** A connection that has had one response and is kept. */
async function keptConnection(port: number, path = '/'): Promise<RawPeer> {
  const peer = await RawPeer.connect(port);
  peer.send(request(path));
  expect(await peer.head()).toMatch(
    /^HTTP\/1\.1 (?:200|401) [\s\S]*Connection: keep-alive\r\nKeep-Alive: timeout=65\b/i,
  );
  return peer;
}

async function isRejected(port: number): Promise<boolean> {
  return RawPeer.connect(port).then(
    ({ socket }) => {
      socket.destroy();
      return false;
    },
    () => true,
  );
}

describe('a replica that gets a stop signal', () => {
  it('drains, finishes what it has begun, writes its usage, and exits with 0', async () => {
    const settings = { ...fleet.environment, SHUTDOWN_DELAY_MS: '6000' };
    const { url, opsUrl, stop } = await startGateway(settings);
    const before = (await fleet.admin.detail(key.id)).usage.totalRequests;
    const port = Number(new URL(url).port);
    const waiting = Array.from({ length: 5 }, () => statusOf(`${url}/held`, key.secret));
    await until(() => held.size === waiting.length);
    const [busy, idle] = [await keptConnection(port), await keptConnection(port)];
    const managed = await keptConnection(port, MANAGEMENT);
    const unused = await RawPeer.connect(port);

    const exited = stop();
    await until(async () => (await readyz(opsUrl)).status === 503);
    expect((await readyz(opsUrl)).components.replica).toBe('shutting down');
    // Within SHUTDOWN_DELAY_MS: served as ever, and asked to connect elsewhere the next time.
    busy.send(request());
    expect(await busy.head(1)).toMatch(/^ok?HTTP\/1\.1 200 [\s\S]*Connection: close/i);
    expect(await busy.ended()).toMatch(/ok$/);
    expect(busy.ending).toBe('fin');
    managed.send(request(MANAGEMENT));
    expect(await managed.ended()).toMatch(/\}HTTP\/1\.1 401 [\s\S]*Connection: close/i);
    expect(managed.ending).toBe('fin');

    await until(() => isRejected(port));
    // Neither a kept connection nor one that never brought a request holds anything up.
    for (const peer of [idle, unused]) {
      await peer.ended();
      expect(peer.ending).toBe('fin');
    }
    expect(held.size).toBe(waiting.length);
    for (const res of held) res.end('late');
    expect(await Promise.all(waiting)).toEqual([200, 200, 200, 200, 200]);
    expect(await exited).toBe(0);
    const { usage } = await fleet.admin.detail(key.id);
    expect(usage.totalRequests - before).toBe(8);
    expect(usage.successfulRequests).toBe(usage.totalRequests);
  });

  it('during a response closes the connection after it, whatever its head said', async () => {
    const settings = { ...fleet.environment, SHUTDOWN_DELAY_MS: '1500' };
    const { url, opsUrl, stop } = await startGateway(settings);
    const port = Number(new URL(url).port);
    const peer = await RawPeer.connect(port);
    peer.send(request('/held'));
    await until(() => held.size === 1);
    const [res] = held;
    res?.write('first');
    expect(await peer.head()).toMatch(/Connection: keep-alive/i);
    const exited = stop();
    await until(async () => (await readyz(opsUrl)).status === 503);
    await until(() => isRejected(port));
    res?.end('last');
    expect(await peer.ended()).toMatch(/first\r\n4\r\nlast\r\n0\r\n\r\n$/);
    expect(peer.ending).toBe('fin');
    expect(await exited).toBe(0);
  });

  it('cuts what is not finished in time, which counts as failed, and exits with 0', async () => {
    const { id, secret } = await fleet.admin.makeKey('cut', 'roomy');
    const { url, stop } = await startGateway({
      ...fleet.environment,
      SHUTDOWN_DELAY_MS: '0',
      SHUTDOWN_DRAIN_MS: '300',
    });
    const waiting = statusOf(`${url}/held`, secret).catch(() => 'cut');
    await until(() => held.size === 1);
    expect(await stop()).toBe(0);
    expect(await waiting).toBe('cut');
    expect((await fleet.admin.detail(id)).usage).toMatchObject({ totalRequests: 1, failedRequests: 1 });
    await until(() => held.size === 0);
  });

  it('exits with 0 when Redis hangs and no usage is left to write', async () => {
    const relay = await TcpRelay.start(portOf(fleet.redisUrl));
    try {
      const { stop, output } = await startGateway({
        ...fleet.environment,
        REDIS_URL: relay.urlOf(fleet.redisUrl),
        SHUTDOWN_DELAY_MS: '0',
      });
      relay.silence();
      expect(await stop()).toBe(0);
      expect(output()).toContain('stopped, usage written');
    } finally {
      await relay.stop();
    }
  });

  it('exits with 0 when Postgres hangs and queries are under way', async () => {
    const { promise: hangs, resolve } = Promise.withResolvers<void>();
    let isStarted = false;
    const relay = await TcpRelay.start(portOf(fleet.databaseUrl), {
      onSent(bytes) {
        // The query that follows the changes, each second.
        if (!isStarted || !bytes.includes('pg_current_snapshot')) return;
        relay.silence();
        resolve();
      },
    });
    try {
      const url = new URL(relay.urlOf(fleet.databaseUrl));
      // The usual timeouts, not those of the tests.
      url.search = '';
      const { stop, output } = await startGateway({
        ...fleet.environment,
        DATABASE_URL: url.href,
        SHUTDOWN_DELAY_MS: '0',
      });
      isStarted = true;
      await hangs;
      const code = await stop();
      const faults = output().match(/^.*could not be stopped cleanly.*$/gm);
      expect({ code, faults }).toEqual({ code: 0, faults: null });
    } finally {
      await relay.stop();
    }
  });

  it('exits with 1 and says so when Redis does not take its usage', async () => {
    const relay = await TcpRelay.start(portOf(fleet.redisUrl));
    try {
      const { url, stop, output } = await startGateway({
        ...fleet.environment,
        REDIS_URL: relay.urlOf(fleet.redisUrl),
        SHUTDOWN_DELAY_MS: '0',
      });
      relay.reject();
      expect(await statusOf(`${url}/`, key.secret)).toBe(200);
      expect(await stop()).toBe(1);
      expect(output()).toContain('usage was lost at the stop');
      expect(output()).not.toContain('stopped, usage written');
    } finally {
      await relay.stop();
    }
  });
});
