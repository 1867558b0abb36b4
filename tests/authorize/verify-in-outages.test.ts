import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Managed } from '../support/admin.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN, type RunningGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
let redis: TcpRelay;
let postgres: TcpRelay;
/** Over the relays. */
let gateway: RunningGateway;
/** Of an admin token. */
let verifier: string;

beforeAll(async () => {
  fleet = await startInProcessFleet(1);
  redis = await TcpRelay.start(portOf(fleet.redisUrl));
  postgres = await TcpRelay.start(portOf(fleet.databaseUrl));
  gateway = await startInProcess({
    ...fleet.environment,
    AUTHORIZE_PORT: '0',
    DATABASE_URL: postgres.urlOf(fleet.databaseUrl),
    REDIS_URL: redis.urlOf(fleet.redisUrl),
  });
  const fields = { name: 'a service', scopes: ['verifier'] };
  verifier = (await fleet.admin.call('POST', '/tollgate/admin-token/create', fields)).body.secret;
  await fleet.admin.makePlan('hundred', 100, 'day');
});
afterAll(async () => {
  await gateway?.stop();
  await fleet?.stop();
  await Promise.all([redis?.stop(), postgres?.stop()]);
});
afterEach(() => {
  redis.pass(portOf(fleet.redisUrl));
  postgres.pass(portOf(fleet.databaseUrl));
});

async function verify(secret: string, token: string, asked: object = {}): Promise<Managed> {
  const response = await fetch(`${gateway.authorizeUrl}/verify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ secret, ...asked }),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

describe('POST /verify', () => {
  it('decides while Redis is away, and names no limits then', async () => {
    const { secret } = await fleet.admin.makeKey('without Redis', 'hundred');
    expect((await verify(secret, verifier)).body).toMatchObject({
      allowed: true,
      limits: [{ limitId: 'main', remaining: 99 }],
    });
    redis.reject();
    const without = await verify(secret, verifier);
    expect([without.status, without.body]).toEqual([
      200,
      expect.objectContaining({
        ...{ allowed: true, status: 200, code: null },
        rateLimitId: 'hundred',
        limits: [],
      }),
    ]);
    redis.pass(portOf(fleet.redisUrl));
    await until(async () => (await verify(secret, verifier)).body.limits.length === 1);
  });

  it('says of a request what it would get while Redis is away, also where that is more than a share', async () => {
    const { secret } = await fleet.admin.makeKey('expensive', 'hundred');
    await verify(secret, verifier, { count: false });
    redis.reject();
    const wouldAllow = async (cost: number) =>
      (await verify(secret, verifier, { count: false, cost })).body.allowed;
    expect([await wouldAllow(80), await wouldAllow(101)]).toEqual([true, false]);
    expect((await verify(secret, verifier, { cost: 80 })).body.allowed).toBe(true);
    expect([await wouldAllow(20), await wouldAllow(80)]).toEqual([false, false]);
  });

  it('has no decision while Postgres is away, 503 with Retry-After, but on what it knows', async () => {
    const known = await fleet.admin.makeKey('known', 'hundred');
    const unknown = await fleet.admin.makeKey('unknown', 'hundred');
    expect((await verify(known.secret, ROOT_TOKEN)).body.allowed).toBe(true);
    postgres.reject();
    expect((await verify(known.secret, ROOT_TOKEN)).body).toMatchObject({ allowed: true, name: 'known' });
    for (const response of [await verify(unknown.secret, ROOT_TOKEN), await verify(known.secret, verifier)]) {
      expect([response.status, response.body.code]).toEqual([503, 'store_unavailable']);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    postgres.pass(portOf(fleet.databaseUrl));
    await until(async () => (await verify(unknown.secret, verifier)).body.allowed === true);
  });
});
