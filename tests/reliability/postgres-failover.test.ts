import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

let primary: PostgresServer;
let standby: PostgresServer;
let way: TcpRelay;
let fleet: Fleet;

beforeAll(async () => {
  primary = await startPostgresServer();
  way = await TcpRelay.start(portOf(primary.url));
  fleet = await startInProcessFleet(2, { DATABASE_URL: way.urlOf(primary.url), USAGE_FLUSH_MS: '200' });
});
afterAll(async () => {
  await fleet?.stop();
  await way?.stop();
  await standby?.stop();
  await primary?.stop();
});

const statuses = (secret: string) => Promise.all(fleet.replicas.map(({ url }) => statusOf(url, secret)));
const change = async (id: string, body: object) =>
  expect((await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, body)).status).toBe(200);
const isReachable = async () => (await fleet.admin.call('GET', '/consumer-api-key')).status === 200;
/** Of usage over time: what was moved to Postgres. */
const storedRequestsOf = async (id: string): Promise<number> =>
  (await fleet.admin.call('GET', `/api-keys/usage?interval=total&consumerApiKeyId=${id}`)).body.rows[0]
    ?.requests;

/** Waits until each replica responds so to requests with a secret. */
async function untilStatus(secret: string, status: number): Promise<void> {
  await until(async () => (await statuses(secret)).every((received) => received === status));
}

describe('a failover to a Postgres that lacks the last changes', () => {
  it('is followed by every replica, and the next changes hold', async () => {
    const { admin } = fleet;
    const disabled = await admin.makeKey('disabled');
    const rotated = await admin.makeKey('rotated');
    const deleted = await admin.makeKey('deleted');
    const counted = await admin.makeKey('counted');
    for (const { secret } of [disabled, rotated, deleted, counted])
      expect(await statuses(secret)).toEqual([200, 200]);
    await until(async () => (await storedRequestsOf(counted.id)) === 2);
    standby = await primary.copy();
    await until(isReachable);

    await change(disabled.id, { enabled: false });
    const { body } = await admin.call('POST', `/consumer-api-key/${rotated.id}/rotate`, { graceSeconds: 0 });
    await admin.deleteKey(deleted.id);
    const made = await admin.makeKey('made');
    expect(await statuses(disabled.secret)).toEqual([401, 401]);
    expect(await statuses(body.secret)).toEqual([200, 200]);
    expect(await statuses(deleted.secret)).toEqual([401, 401]);
    expect(await statuses(made.secret)).toEqual([200, 200]);
    expect(await statuses(counted.secret)).toEqual([200, 200]);
    await until(async () => (await storedRequestsOf(counted.id)) === 4);

    way.reject();
    await primary.halt();
    await standby.resume();
    way.pass(portOf(standby.url));
    await until(isReachable);

    await untilStatus(disabled.secret, 200);
    await untilStatus(body.secret, 401);
    await untilStatus(rotated.secret, 200);
    await untilStatus(made.secret, 401);
    // Redis still knows of the deletion.
    await untilStatus(deleted.secret, 503);

    await change(disabled.id, { enabled: false });
    expect(await statuses(disabled.secret)).toEqual([401, 401]);
    await admin.deleteKey(deleted.id);
    await untilStatus(deleted.secret, 401);
    const again = await admin.makeKey('made again');
    expect(await statuses(again.secret)).toEqual([200, 200]);
    expect((await admin.call('GET', '/tollgate/audit-log/verify')).body.valid).toBe(true);

    // What was moved to the primary after the copy is lost with it, and nothing that comes later.
    expect(await storedRequestsOf(counted.id)).toBe(2);
    expect(await statuses(counted.secret)).toEqual([200, 200]);
    await until(async () => (await storedRequestsOf(counted.id)) === 4);
  });
});
