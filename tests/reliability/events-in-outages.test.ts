import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectPostgres, serverOf } from '../../src/storage/postgres/postgres-connection.ts';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { makeUsageEvents, usageOverTime, wrongUsage } from '../events/support/usage-oracle.ts';
import { withReceiver } from '../events/support/with-receiver.ts';
import { Admin } from '../support/admin.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { type GatewayProcess, startGateway } from '../support/gateway.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { createMigratedDatabase } from '../support/stores.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { untilDegraded } from './support/redis-fleet.ts';

const receiver = withReceiver();
let redis: RedisServer;
let postgres: TcpRelay;
let database: Awaited<ReturnType<typeof createMigratedDatabase>>;
let db: RecordsDatabase;
let fleet: Fleet<GatewayProcess>;
let replicas: GatewayProcess[];
beforeAll(async () => {
  database = await createMigratedDatabase();
  postgres = await TcpRelay.start(portOf(database.url));
  db = connectPostgres({ server: serverOf(database.url), maxConnections: 2, onIdleError: () => {} });
  redis = await startRedisServer();
  fleet = await startFleet(2, {
    DATABASE_URL: postgres.urlOf(database.url),
    REDIS_URL: redis.url,
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  });
  replicas = [...fleet.replicas];
  const events = ['tollgate.usage.*', 'tollgate.gateway.*', 'tollgate.limit.threshold'];
  const webhook = { url: receiver.url, events, batch: true };
  const idempotent = { 'idempotency-key': 'the-webhook' };
  const { status } = await fleet.admin.call('POST', '/tollgate/webhook/create', webhook, idempotent);
  expect(status).toBe(201);
});
afterAll(async () => {
  for (const replica of replicas) await replica.kill();
  await fleet?.stop();
  await redis?.stop();
  await db?.destroy();
  await postgres?.stop();
  await database?.drop();
});

/** All events that the receiver got so far. */
async function events() {
  return (await receiver.received(0)).flatMap(({ body }) => JSON.parse(body));
}

/** Those of degradation. An event may be sent more than once. */
async function gatewayEvents() {
  const found = (await events()).filter(({ type }) => type.startsWith('tollgate.gateway.'));
  return [...new Map(found.map((event) => [event.id, event])).values()];
}

/** Requests with a key at each replica. Some may fail. */
async function use(secret: string, requests = 5): Promise<void> {
  const headers = { authorization: `Bearer ${secret}` };
  for (let sent = 0; sent < requests; sent += 1)
    for (const { url } of replicas)
      await fetch(url, { method: 'POST', headers, body: 'abc' }).then(
        (response) => response.arrayBuffer(),
        () => {},
      );
}

describe('with real replicas and stores', () => {
  it('each replica says once that it decides without Redis, and once that it does not any more', async () => {
    const { secret } = await fleet.admin.makeKey('finds out');
    await fleet.admin.makePlan('watched', 40, 'day');
    const watched = await fleet.admin.makeKey('passes thresholds', 'watched');
    const thresholds = async () =>
      (await events()).filter(({ type }) => type === 'tollgate.limit.threshold').map(({ data }) => data);
    const seen = new Set((await gatewayEvents()).map(({ id }) => id));
    const newEvents = async () => (await gatewayEvents()).filter(({ id }) => !seen.has(id));
    await redis.stop();
    await untilDegraded(replicas, secret, true);
    // Of what is allowed without Redis no event says anything, also not when it is added to the windows in Redis.
    await use(watched.secret, 20);
    redis = await startRedisServer(['--port', String(redis.port)]);
    await untilDegraded(replicas, secret, false);
    // On a machine that stands still a replica may lose Redis once more: that is an outage with two events as well.
    const outages = async () => [
      ...Map.groupBy(await newEvents(), ({ subject, data }) => `${subject} ${data.since}`).values(),
    ];
    let found = await outages();
    const subjects = () => new Set(found.map(([event]) => event?.subject)).size;
    await until(async () => {
      found = await outages();
      return subjects() >= 2 && found.every((events) => events.length >= 2);
    });
    expect(subjects()).toBe(2);
    const both = ['tollgate.gateway.degraded', 'tollgate.gateway.recovered'];
    for (const events of found) {
      expect(events.map(({ type }) => type).toSorted()).toEqual(both);
      expect(events[0]?.data).toEqual(events[1]?.data);
    }
    const { body } = await fleet.admin.call('GET', `/consumer-api-key/${watched.id}/limits`);
    expect(body.limits[0].used).toBeGreaterThanOrEqual(32);
    expect(await thresholds()).toEqual([]);
  });

  it('usage in events is usage over time, whatever ends meanwhile and although clocks jump', async () => {
    await fleet.admin.makePlan('four', 4, 'hour');
    const [kept, limited, deleted] = [
      await fleet.admin.makeKey('kept'),
      await fleet.admin.makeKey('limited', 'four'),
      await fleet.admin.makeKey('deleted within the hour'),
    ];
    const sendWithAll = async () => {
      for (const { secret } of [kept, limited, deleted]) await use(secret);
    };
    await sendWithAll();
    // Beside that of the key of the test before, which may come earlier or later.
    await until(async () => {
      const usage = await usageOverTime(db);
      return [kept, limited, deleted].every(({ id }) => usage.has(id));
    });
    // A replica whose clock is ahead: what comes from now on is late.
    await makeUsageEvents(db);
    const requests = sendWithAll();
    await replicas[0]?.kill();
    await requests;
    replicas[0] = await startGateway(fleet.environment);
    postgres.reject();
    await sendWithAll();
    postgres.pass(portOf(database.url));
    const admin = new Admin(replicas[0].url);
    await until(async () => (await admin.call('DELETE', `/consumer-api-key/${deleted.id}`)).status === 200);
    await sendWithAll();
    await redis.stop();
    await sendWithAll();
    redis = await startRedisServer(['--port', String(redis.port)]);
    await untilDegraded(replicas, kept.secret, false);
    const requestsOfKept = async () => (await usageOverTime(db)).get(kept.id)?.requests ?? 0;
    const before = await requestsOfKept();
    await sendWithAll();
    await until(async () => (await requestsOfKept()) >= before + 10);
    // The lease of the replica that was killed ends by itself.
    await db.deleteFrom('leases').execute();
    await until(async () => {
      await makeUsageEvents(db);
      const ofUsage = (await events()).filter(({ type }) => type === 'tollgate.usage.hour');
      return wrongUsage(ofUsage, await usageOverTime(db)).length === 0;
    });
    expect((await usageOverTime(db)).size).toBeGreaterThanOrEqual(3);
  });
});
