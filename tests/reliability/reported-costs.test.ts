import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { startGateway } from '../support/gateway.ts';
import { until } from '../support/until.ts';

const LIMIT = 1000;
const RESERVE = 5;
const COST = 30;
const IN_FLIGHT = 8;

let fleet: Fleet;
const held = new Set<ServerResponse>();

beforeAll(async () => {
  fleet = await startFleet(1, { SHUTDOWN_DELAY_MS: '0', SHUTDOWN_DRAIN_MS: '60000' }, (_req, res) => {
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
