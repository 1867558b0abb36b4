import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { startGateway } from '../support/gateway.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { metric, readyz } from './support/probe.ts';

const LIMIT = 1000;
const RESERVE = 5;
const COST = 30;
const IN_FLIGHT = 8;

let fleet: Fleet;
const held = new Set<ServerResponse>();

beforeAll(async () => {
  const settings = { SHUTDOWN_DELAY_MS: '0', SHUTDOWN_DRAIN_MS: '60000' };
  fleet = await startInProcessFleet(1, settings, (_req, res) => {
    held.add(res);
    res.once('close', () => held.delete(res));
  });
  const plan = { rateLimitId: 'chat', description: '', limit: LIMIT, period: 'day' };
  const costs = [{ path: '/**', cost: 'response', reserve: RESERVE }];
  expect((await fleet.admin.call('POST', '/rate-limit/create', { ...plan, costs })).status).toBe(201);
});
afterAll(() => fleet?.stop());

/** Units that the key has used, as the fleet's own replica reads them. */
async function usedBy(keyId: string): Promise<number> {
  const { body } = await fleet.admin.call('GET', `/consumer-api-key/${keyId}/limits`);
  return body.limits[0].used;
}

/** Has requests in flight at a separate replica, whose costs the backend has not said yet. */
async function startChats(secret: string) {
  const replica = await startGateway(fleet.environment);
  const statuses = Array.from({ length: IN_FLIGHT }, () => statusOf(`${replica.url}/chat`, secret));
  await until(() => held.size === IN_FLIGHT);
  return { replica, statuses };
}

function respondToAll(): void {
  for (const res of held) res.writeHead(200, { 'Tollgate-Cost': COST }).end('ok');
}

describe('costs that the backend reports while a replica ends', () => {
  it('are all settled, each once, by a replica that was asked to stop', async () => {
    const key = await fleet.admin.makeKey('stopped', 'chat');
    const { replica, statuses } = await startChats(key.secret);
    expect(await usedBy(key.id)).toBe(IN_FLIGHT * RESERVE);
    const exited = replica.stop();
    respondToAll();
    expect(await Promise.all(statuses)).toEqual(Array.from({ length: IN_FLIGHT }, () => 200));
    expect(await exited).toBe(0);
    expect(await usedBy(key.id)).toBe(IN_FLIGHT * COST);
  });

  it('are settled once or not at all by a replica that is killed: the reserve stands', async () => {
    const key = await fleet.admin.makeKey('killed', 'chat');
    const { replica, statuses } = await startChats(key.secret);
    const ended = Promise.allSettled(statuses);
    respondToAll();
    await replica.kill();
    await ended;
    const settled = ((await usedBy(key.id)) - IN_FLIGHT * RESERVE) / (COST - RESERVE);
    expect(settled).toBe(Math.trunc(settled));
    expect(settled).toBeGreaterThanOrEqual(0);
    expect(settled).toBeLessThanOrEqual(IN_FLIGHT);
  });
});

describe('costs that the backend reports while Redis is away', () => {
  let server: RedisServer;
  let relay: TcpRelay;
  let alone: Fleet;

  beforeAll(async () => {
    server = await startRedisServer();
    relay = await TcpRelay.start(server.port);
    alone = await startInProcessFleet(1, { REDIS_URL: relay.urlOf(server.url) }, (req, res) => {
      if (req.url === '/held') held.add(res.once('close', () => held.delete(res)));
      else res.writeHead(200, { 'Tollgate-Cost': COST }).end('ok');
    });
    const plan = { rateLimitId: 'chat', description: '', limit: LIMIT, period: 'day' };
    const costs = [{ path: '/**', cost: 'response' }];
    expect((await alone.admin.call('POST', '/rate-limit/create', { ...plan, costs })).status).toBe(201);
  });
  afterAll(async () => {
    await alone?.stop();
    await relay?.stop();
    await server?.stop();
  });

  it('are all in Redis afterwards if it had decided the requests before', async () => {
    const { id, secret } = await alone.admin.makeKey('before', 'chat');
    const [replica] = alone.replicas;
    if (replica === undefined) throw new Error('no replica');
    const statuses = Array.from({ length: IN_FLIGHT }, () => statusOf(`${replica.url}/held`, secret));
    await until(() => held.size === IN_FLIGHT);
    relay.reject();
    await until(async () => (await readyz(replica.opsUrl)).components.redis !== 'ok');
    respondToAll();
    expect(await Promise.all(statuses)).toEqual(Array.from({ length: IN_FLIGHT }, () => 200));
    relay.pass(server.port);
    await until(
      async () =>
        (await metric(replica.opsUrl, 'tollgate_reported_costs_total', 'result="settled"')) === IN_FLIGHT,
    );
    expect((await alone.admin.call('GET', `/consumer-api-key/${id}/limits`)).body).toMatchObject({
      limits: [{ used: IN_FLIGHT * COST }],
    });
  });

  it('use up the share of the replica, and are all in Redis afterwards', async () => {
    const { id, secret } = await alone.admin.makeKey('alone', 'chat');
    const [replica] = alone.replicas;
    if (replica === undefined) throw new Error('no replica');
    relay.reject();
    // A decision that is sent and lost may be counted by Redis: its difference is not.
    await until(async () => (await readyz(replica.opsUrl)).components.redis !== 'ok');
    const settled = () => metric(replica.opsUrl, 'tollgate_reported_costs_total', 'result="settled"');
    const before = await settled();
    let allowed = 0;
    const ask = async (): Promise<number> => {
      const status = await statusOf(`${replica.url}/chat`, secret);
      if (status === 200) allowed += 1;
      return status;
    };
    await until(async () => (await ask()) === 429, { longestPauseMs: 1 });
    // A request may be decided before the one before it is settled, but not a hundred of them.
    expect(allowed).toBeGreaterThanOrEqual(LIMIT / COST);
    expect(allowed).toBeLessThan(LIMIT / COST + 100);
    await until(async () => (await settled()) === before + allowed);
    relay.pass(server.port);
    await until(async () => {
      // A trial of the circuit. The first one that reaches Redis may find room there.
      await ask();
      const { body } = await alone.admin.call('GET', `/consumer-api-key/${id}/limits`);
      return body.limits[0].used === allowed * COST;
    });
    await until(async () => (await settled()) === before + allowed);
  });
});
