import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { type GatewayProcess, isAlive, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startInProcessFleet(2);
});
afterAll(() => fleet?.stop());

interface Sent {
  readonly key: string;
  readonly body: object;
}

function post(replica: number, path: string, sent: Sent): Promise<Response> {
  return postTo(fleet.replicas[replica]?.url ?? '', path, sent);
}

function postTo(url: string, path: string, { key, body }: Sent): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${ROOT_TOKEN}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
  });
}

describe('two replicas that get the same Idempotency-Key', () => {
  it('at once make one key, over and over', async () => {
    for (let round = 0; round < 20; round += 1) {
      const request = { key: `round-${round}`, body: { name: `made in round ${round}` } };
      const send = (replica: number) => post(replica, '/consumer-api-key/create', request);
      const responses = await Promise.all([0, 1, 0, 1].map(send));
      const made = (await Promise.all(
        responses.filter(({ status }) => status === 201).map((response) => response.json()),
      )) as readonly { readonly secret: string }[];
      expect(made.length).toBeGreaterThan(0);
      expect(responses.every(({ status }) => status === 201 || status === 409)).toBe(true);
      expect(await (await send(1)).json()).toEqual(made[0]);
      expect(new Set(made.map(({ secret }) => secret)).size).toBe(1);
    }
    const { body } = await fleet.admin.call('GET', '/consumer-api-key');
    expect(body.apiKeys).toHaveLength(20);
  });

  it('hold a change that it made with the next request', async () => {
    const { id, secret } = await fleet.admin.makeKey('limited');
    await fleet.admin.makePlan('two', 2, 'hour');
    await fleet.admin.makePlan('three', 3, 'hour');
    await fleet.admin.bind(id, 'two');
    const used = [0, 1, 0].map((replica) => fleet.replicas[replica]?.url ?? '');
    const statuses: number[] = [];
    for (const url of used) statuses.push(await statusOf(url, secret));
    expect(statuses).toEqual([200, 200, 429]);
    const request = { key: 'bind', body: { consumerApiKeyId: id, rateLimitId: 'three' } };
    expect((await post(0, '/api-keys/apply-rate-limit', request)).status).toBe(200);
    expect(await statusOf(fleet.replicas[1]?.url ?? '', secret)).toBe(200);
    const replayed = await post(1, '/api-keys/apply-rate-limit', request);
    expect(replayed.headers.get('idempotency-replayed')).toBe('true');
    expect(await statusOf(fleet.replicas[0]?.url ?? '', secret)).toBe(429);
  });

  it('grant the room of one request once', async () => {
    const { id } = await fleet.admin.makeKey('granted');
    const request = { key: 'grant', body: { requests: 7 } };
    const path = `/consumer-api-key/${id}/limits/grant`;
    await Promise.all([0, 1, 0, 1].map((replica) => post(replica, path, request)));
    const shown = await (await post(1, path, request)).json();
    expect(shown).toMatchObject({ limits: [{ granted: 7 }] });
  });
});

it('grants for keys that are being limited all succeed at once', async () => {
  await fleet.admin.makePlan('none-left', 1, 'hour');
  const url = fleet.replicas[0]?.url ?? '';
  // More than the replica has connections to Postgres.
  const names = Array.from({ length: 18 }, (_, index) => `none-left-${index}`);
  const keys = await Promise.all(names.map((name) => fleet.admin.makeKey(name, 'none-left')));
  let isOver = false;
  const limited = Promise.withResolvers<void>();
  let limitedKeys = 0;
  const senders = keys.map(async ({ secret }) => {
    while ((await statusOf(url, secret)) !== 429);
    limitedKeys += 1;
    if (limitedKeys === keys.length) limited.resolve();
    while (!isOver) await statusOf(url, secret);
  });
  await limited.promise;
  const grants = await Promise.all(
    keys.map(({ id }) =>
      post(0, `/consumer-api-key/${id}/limits/grant`, { key: `grant-${id}`, body: { requests: 1 } }),
    ),
  );
  isOver = true;
  await Promise.all(senders);
  expect(grants.map(({ status }) => status)).toEqual(keys.map(() => 200));
});

describe('a request whose replica is killed', () => {
  let postgres: TcpRelay;
  let redis: TcpRelay;
  let toPostgres: (bytes: string, client: Socket) => void;
  let toRedis: (bytes: string) => void;
  let victim: GatewayProcess;
  beforeEach(async () => {
    [toPostgres, toRedis] = [() => {}, () => {}];
    postgres = await TcpRelay.start(portOf(fleet.databaseUrl), {
      onSent: (bytes, client) => toPostgres(String(bytes), client),
    });
    redis = await TcpRelay.start(portOf(fleet.redisUrl), { onSent: (bytes) => toRedis(String(bytes)) });
    victim = await startGateway({
      ...fleet.environment,
      DATABASE_URL: postgres.urlOf(fleet.databaseUrl),
      REDIS_URL: redis.urlOf(fleet.redisUrl),
    });
  });
  afterEach(async () => {
    if (isAlive(victim.pid)) await victim.kill();
    await Promise.all([postgres.stop(), redis.stop()]);
  });

  /** Sends it to the replica that is to be killed, and kills that once `isTime`. */
  async function sendAndKill(path: string, sent: Sent, isTime: () => boolean | Promise<boolean>) {
    const response = postTo(victim.url, path, sent).catch(() => 'killed');
    await until(isTime);
    await victim.kill();
    expect(await response).toBe('killed');
    // Postgres notices, and ends what was under way.
    postgres.cut();
  }

  /** Acts when the replica commits a response that is kept, and not when something beside it does. */
  function atCommit(act: () => void): void {
    let keeper: Socket | undefined;
    toPostgres = (bytes, client) => {
      if (bytes.includes('idempotent_responses') && /insert into/i.test(bytes)) keeper = client;
      if (client === keeper && /\bcommit\b/i.test(bytes)) act();
    };
  }

  /** Sends it again to another replica, once nothing of the first sending is under way. */
  async function sendAgain(path: string, sent: Sent): Promise<Response> {
    let response = await post(0, path, sent);
    await until(async () => {
      if (response.status === 409) response = await post(0, path, sent);
      return response.status !== 409;
    });
    return response;
  }

  /** The actions that the audit log has of a key, the last one first. Its chain is whole. */
  async function actionsOn(keyId: string): Promise<readonly string[]> {
    const { body } = await fleet.admin.call('GET', `/tollgate/audit-log?targetId=${keyId}`);
    expect((await fleet.admin.call('GET', '/tollgate/audit-log/verify')).body.valid).toBe(true);
    return body.entries.map(({ action }: { action: string }) => action);
  }

  const keysNamed = async (name: string) =>
    (await fleet.admin.call('GET', `/consumer-api-key?q=${name}`)).body.apiKeys;

  const planOf = async (keyId: string) =>
    (await fleet.admin.call('GET', `/consumer-api-key/${keyId}?reveal=false`)).body.rateLimitId;

  it('after the commit is repeated, with the key that was made', async () => {
    const name = 'killed-after-the-commit';
    const sent = { key: name, body: { name } };
    // It arrives; that it did is never heard of.
    atCommit(() => postgres.silence());
    await sendAndKill('/consumer-api-key/create', sent, async () => (await keysNamed(name)).length > 0);
    const again = await sendAgain('/consumer-api-key/create', sent);
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true']);
    const made = (await again.json()) as { readonly id: string; readonly secret: string };
    expect((await keysNamed(name)).map((key: { consumerApiKeyId: string }) => key.consumerApiKeyId)).toEqual([
      made.id,
    ]);
    expect(await statusOf(fleet.replicas[1]?.url ?? '', made.secret)).toBe(200);
    expect(await actionsOn(made.id)).toEqual(['key.create']);
  });

  it('before the commit is performed when it is sent again, once', async () => {
    const name = 'killed-before-the-commit';
    const sent = { key: name, body: { name } };
    let isWritten = false;
    toPostgres = (bytes) => {
      if (!bytes.includes('idempotent_responses') || !/insert into/i.test(bytes)) return;
      isWritten = true;
      postgres.silence();
    };
    await sendAndKill('/consumer-api-key/create', sent, () => isWritten);
    const again = await sendAgain('/consumer-api-key/create', sent);
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, null]);
    const made = (await again.json()) as { readonly id: string; readonly secret: string };
    expect(await keysNamed(name)).toHaveLength(1);
    expect(await actionsOn(made.id)).toEqual(['key.create']);
  });

  it.each([
    ['while Redis publishes its change', 'published'],
    ['before Redis knows of its change', 'unpublished'],
  ])('%s is repeated, and the change holds', async (_when, plan) => {
    await fleet.admin.makePlan(plan, 1, 'hour');
    // Another key's, so that Redis knows the scripts, and each call is one command.
    await fleet.admin.makeKey('another', plan);
    const { id, secret } = await fleet.admin.makeKey(plan);
    const url = fleet.replicas[1]?.url ?? '';
    expect(await statusOf(url, secret)).toBe(200);
    const sent = { key: plan, body: { consumerApiKeyId: id, rateLimitId: plan } };
    let isCommitted = false;
    /** Those before the commit mark copies of the key as stale, the one after it publishes the change. */
    const calls = { before: 0, after: 0 };
    toRedis = (bytes) => {
      if (!bytes.includes(`tg:{${id}}`)) return;
      calls[isCommitted ? 'after' : 'before'] += 1;
      if (isCommitted) redis.silence();
    };
    atCommit(() => {
      isCommitted = true;
      if (plan === 'unpublished') redis.silence();
    });
    const expectedCalls = plan === 'unpublished' ? 0 : 1;
    await sendAndKill(
      '/api-keys/apply-rate-limit',
      sent,
      async () => calls.after >= expectedCalls && (await planOf(id)) === plan,
    );
    expect(calls.after).toBe(expectedCalls);
    expect(calls.before).toBeGreaterThan(0);
    // The request before counts: it is in the window of this plan as well.
    expect(await statusOf(url, secret)).toBe(429);
    const again = await sendAgain('/api-keys/apply-rate-limit', sent);
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
    expect(await actionsOn(id)).toEqual(['key.update', 'key.create']);
  });

  it('after Redis gave more room gives it once, with an entry for each sending', async () => {
    const { id } = await fleet.admin.makeKey('killed-after-a-grant');
    const path = `/consumer-api-key/${id}/limits`;
    // Another key's, so that Redis knows the script, and one command is enough.
    const other = await fleet.admin.makeKey('another');
    await fleet.admin.call('POST', `/consumer-api-key/${other.id}/limits/grant`, { requests: 1 });
    const sent = { key: 'killed-after-a-grant', body: { requests: 7 } };
    toRedis = (bytes) => {
      if (bytes.includes(`tg:{${id}}`)) redis.silence();
    };
    const granted = async () => (await fleet.admin.call('GET', path)).body.limits[0].granted;
    await sendAndKill(`${path}/grant`, sent, async () => (await granted()) === 7);
    const again = await sendAgain(`${path}/grant`, sent);
    expect(again.status).toBe(200);
    expect(await again.json()).toMatchObject({ limits: [{ granted: 7 }] });
    expect(await granted()).toBe(7);
    expect(await actionsOn(id)).toEqual(['limits.grant', 'limits.grant', 'key.create']);
  });
});
