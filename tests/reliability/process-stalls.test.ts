import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import type { GatewayProcess } from '../support/gateway.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { metric } from './support/probe.ts';

const KEYS = 200;
/** Keys that are used up at a time: so few that a pause of the machine does not open the circuit. */
const AT_ONCE = 4;
const STALLS = 5;
const TIMEOUT_MS = 1000;
/** Longer than a decision may take. */
const STALL_MS = 1200;
const CLIENTS = 40;

describe('a replica whose process stands still again and again while Redis is well', () => {
  let server: RedisServer;
  let fleet: Fleet<GatewayProcess>;
  beforeAll(async () => {
    // Not the one that all tests share: nothing but this test may keep it from responding in time.
    server = await startRedisServer();
    fleet = await startFleet(1, { REDIS_URL: server.url, REDIS_TIMEOUT_MS: String(TIMEOUT_MS) });
  });
  afterAll(async () => {
    await fleet?.stop();
    await server?.stop();
  });

  it('allows nothing in windows that are used up, and keeps calling Redis', async () => {
    const [replica] = fleet.replicas;
    if (replica === undefined) throw new Error('no replica');
    await fleet.admin.makePlan('one', 1, 'day');
    const secrets = Array.from({ length: KEYS }, () => createSecret('tg', systemRandom));
    const keys = secrets.map((secret) => ({ name: 'a key', secret, rateLimitId: 'one' }));
    expect((await fleet.admin.call('POST', '/api-keys/import', { keys })).status).toBe(200);
    // A busy machine may be slower than the timeout; such a request is in the window as well.
    const exhaust = async (first: number): Promise<void> => {
      for (let key = first; key < KEYS; key += AT_ONCE)
        await until(async () => (await statusOf(replica.url, secrets[key] ?? '')) === 429);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, (_, first) => exhaust(first)));
    const allowedBefore = fleet.backendRequests();
    const statuses = new Map<number, number>();
    let isOver = false;
    const client = async (first: number): Promise<void> => {
      for (let turn = first; !isOver; turn += CLIENTS) {
        const status = await statusOf(replica.url, secrets[turn % KEYS] ?? '');
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, first) => client(first));
    try {
      for (let stall = 0; stall < STALLS; stall += 1) {
        const before = statuses.get(429) ?? 0;
        await until(() => (statuses.get(429) ?? 0) > before + CLIENTS);
        process.kill(replica.pid, 'SIGSTOP');
        await wait(STALL_MS);
        process.kill(replica.pid, 'SIGCONT');
      }
    } finally {
      process.kill(replica.pid, 'SIGCONT');
      isOver = true;
      await Promise.all(clients);
    }
    expect([...statuses.keys()]).toEqual([429]);
    expect(fleet.backendRequests()).toBe(allowedBefore);
    expect(await metric(replica.opsUrl, 'tollgate_limiter_breaker_openings_total')).toBe(0);
  });
});
