import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { Pool } from 'pg';
import { statusOf } from '../support/burst.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN, type RunningGateway, startGateway } from '../support/gateway.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';

let fleet: Fleet;
let db: Kysely<unknown>;
beforeAll(async () => {
  fleet = await startInProcessFleet(2);
  db = new Kysely({
    dialect: new PostgresDialect({ pool: new Pool({ connectionString: fleet.databaseUrl }) }),
  });
});
afterAll(async () => {
  await db?.destroy();
  await fleet?.stop();
});

const replica = (index: number): RunningGateway => {
  const found = fleet.replicas[index];
  if (found === undefined) throw new Error('no such replica');
  return found;
};

async function send(gateway: RunningGateway, method: string, path: string, body?: object) {
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
  return { status: response.status, body: (await response.json()) as any };
}

function apply(gateway: RunningGateway, body: object) {
  return send(gateway, 'POST', '/tollgate/config/apply', body);
}

function keysNamed(prefix: string, count: number, fields: object = {}) {
  return Array.from({ length: count }, (_, n) => ({
    externalId: `${prefix}-${n}`,
    name: `key ${n}`,
    ...fields,
  }));
}

async function rows<Row>(query: ReturnType<typeof sql<Row>>): Promise<readonly Row[]> {
  return (await query.execute(db)).rows;
}

async function countOf(prefix: string): Promise<{ readonly keys: number; readonly entries: number }> {
  const pattern = `${prefix}-%`;
  const [found] = await rows(sql<{ keys: string; entries: string }>`
    SELECT (SELECT count(*) FROM consumer_keys WHERE external_id LIKE ${pattern}) AS keys,
      (SELECT count(*) FROM audit_log WHERE action = 'key.create' AND changes LIKE ${`%"${prefix}-%`}) AS entries`);
  return { keys: Number(found?.keys), entries: Number(found?.entries) };
}

describe('a configuration that one replica applies', () => {
  it('holds on the other replica with the next request, deletions included', async () => {
    const plan = (limit: number) => ({ rateLimitId: 'holds', limit, period: 'day' });
    const keys = keysNamed('holds', 3, { rateLimitId: 'holds' });
    const [first, second, third] = keys;
    const owner = 'holds';
    const made = await apply(replica(0), { owner, config: { plans: [plan(1000)], keys } });
    const [a, b, c] = made.body.secrets.map(({ secret }: { secret: string }) => secret);
    for (const secret of [a, b, c])
      for (const { url } of fleet.replicas) expect(await statusOf(url, secret)).toBe(200);
    const config = { plans: [plan(1)], keys: [first, { ...second, enabled: false }] };
    expect(third).toBeDefined();
    const changed = await apply(replica(0), { owner, prune: true, config });
    expect(changed.body.summary).toEqual({ create: 0, update: 2, delete: 1, unchanged: 1 });
    for (const { url } of fleet.replicas) {
      expect(await statusOf(url, a)).toBe(429);
      expect(await statusOf(url, b)).toBe(401);
      expect(await statusOf(url, c)).toBe(401);
    }
    await apply(replica(1), { owner, prune: true, config: { plans: [plan(1000)], keys: keys.slice(0, 2) } });
    for (const { url } of fleet.replicas)
      for (const secret of [a, b]) expect(await statusOf(url, secret)).toBe(200);
  });

  it("gives a pruned key's secret to the key that replaces it, on every replica", async () => {
    const secret = randomBytes(24).toString('base64url');
    const secretHash = { algorithm: 'sha256', value: createHash('sha256').update(secret).digest('hex') };
    const configOf = (name: string) => ({
      plans: [{ rateLimitId: `${name}-plan`, limit: 1000, period: 'day' }],
      keys: [{ externalId: name, name: 'renamed', rateLimitId: `${name}-plan`, secretHash }],
    });
    const owner = 'renamed';
    expect(await apply(replica(0), { owner, config: configOf('before') })).toMatchObject({ status: 200 });
    for (const { url } of fleet.replicas) expect(await statusOf(url, secret)).toBe(200);
    // Without prune both would have the secret.
    const both = await apply(replica(0), { owner, config: configOf('after') });
    expect(both).toMatchObject({ status: 409, body: { code: 'secret_taken' } });
    const after = await apply(replica(0), { owner, prune: true, config: configOf('after') });
    expect(after.body.summary).toEqual({ create: 2, update: 0, delete: 2, unchanged: 0 });
    for (const { url } of fleet.replicas) expect(await statusOf(url, secret)).toBe(200);
    const { body } = await send(replica(1), 'GET', '/tollgate/audit-log?limit=5');
    const actions = body.entries.map(({ action }: { action: string }) => action);
    expect(actions.toReversed()).toEqual([
      'plan.create',
      'key.delete',
      'key.create',
      'plan.delete',
      'config.apply',
    ]);
    const found = await send(replica(1), 'POST', '/api-keys/find', { secret });
    expect(found.body).toMatchObject({ externalId: 'after', rateLimitId: 'after-plan' });
  });

  it.each([
    ['has written its keys', sql`SELECT FROM audit_log_ends FOR UPDATE`],
    ['waits for the others', sql`SELECT FROM secret_imports FOR UPDATE`],
  ])('leaves nothing when the replica is killed while it %s', async (what, lock) => {
    const prefix = `killed-${what.length}`;
    const value = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
    const [first = {}, ...others] = keysNamed(prefix, 3000);
    const config = { keys: [{ ...first, secretHash: { algorithm: 'sha256', value } }, ...others] };
    const victim = await startGateway(fleet.environment);
    const pending = await db.transaction().execute(async (trx) => {
      await lock.execute(trx);
      const sent = apply(victim, { owner: prefix, config }).catch(() => undefined);
      await until(async () => (await waitingForLocks(db)) > 0);
      await victim.kill();
      return sent;
    });
    expect(pending).toBeUndefined();
    // Configurations take turns: this one comes after Postgres has noticed.
    const after = await apply(replica(0), { owner: prefix, config: {} });
    expect(after.body.summary).toEqual({ create: 0, update: 0, delete: 0, unchanged: 0 });
    expect(await countOf(prefix)).toEqual({ keys: 0, entries: 0 });
    const { body } = await send(replica(0), 'GET', '/tollgate/audit-log/verify');
    expect(body.valid).toBe(true);
  });
});

describe('configurations at the same time', () => {
  it('of one owner, on two replicas, make each key once', async () => {
    const config = { keys: keysNamed('twice', 300) };
    const responses = await Promise.all(
      [0, 1, 0, 1].map((index) => apply(replica(index), { owner: 'twice', config })),
    );
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const created = responses.reduce((sum, { body }) => sum + body.summary.create, 0);
    expect(created).toBe(300);
    expect(await countOf('twice')).toEqual({ keys: 300, entries: 300 });
  });

  it('do not deadlock with changes, rotations, imports and deletions by the API', async () => {
    const owner = 'busy';
    const plans = ['busy-a', 'busy-b', 'busy-c'];
    const config = (round: number) => ({
      plans: plans.map((rateLimitId) => ({ rateLimitId, limit: 1000 + round, period: 'day' })),
      keys: keysNamed('busy', 60, { rateLimitId: plans[round % 3], tags: [`round-${round}`] }),
    });
    const { body: made } = await apply(replica(0), { owner, config: config(0) });
    const ids: string[] = made.secrets.map(
      ({ consumerApiKeyId }: { consumerApiKeyId: string }) => consumerApiKeyId,
    );
    const secrets: string[] = made.secrets.map(({ secret }: { secret: string }) => secret);
    const statuses: number[] = [];
    const note = async (sent: ReturnType<typeof send>) => {
      const { status, body } = await sent;
      // On a busy machine a change may wait for its turn for longer than the gateway lets it. Postgres ends a deadlock sooner, with an error that is a 500 here.
      if (body?.code !== 'store_unavailable') statuses.push(status);
    };
    const rounds = 6;
    const applying = [0, 1].map(async (index) => {
      for (let round = 1; round <= rounds; round += 1)
        await note(apply(replica(index), { owner, force: true, prune: true, config: config(round + index) }));
    });
    const changes = 30;
    const changing = [0, 1].map(async (index) => {
      for (let n = 0; n < changes; n += 1) {
        const id = ids[index === 0 ? n : changes - 1 - n];
        const gateway = replica(index);
        const path = `/consumer-api-key/${id}`;
        await Promise.all([
          note(send(gateway, 'PATCH', path, { rateLimitId: plans[n % 3], addTags: ['patched'] })),
          note(send(gateway, 'PATCH', `/rate-limit/${plans[n % 3]}`, { limit: 5000 + n })),
          note(
            send(gateway, 'POST', `${path}/rotate`, {
              graceSeconds: 0,
              secret: `busy-${index}-${n}-${'x'.repeat(24)}`,
            }),
          ),
          note(
            send(gateway, 'POST', '/api-keys/import', {
              keys: [
                { name: 'n', rateLimitId: plans[n % 3], secret: `import-${index}-${n}-${'x'.repeat(24)}` },
              ],
            }),
          ),
          note(
            send(gateway, 'POST', '/consumer-api-key/create', { name: 'n', rateLimitId: plans[(n + 1) % 3] }),
          ),
          statusOf(gateway.url, secrets[n] ?? ''),
          ...(n % 10 === 9 ? [note(send(gateway, 'DELETE', path))] : []),
        ]);
      }
    });
    await Promise.all([...applying, ...changing]);
    // A key may be gone when it is changed; a fault of ours is none of these.
    expect(statuses.filter((status) => ![200, 201, 404].includes(status))).toEqual([]);
    const { body } = await send(replica(0), 'GET', '/tollgate/audit-log/verify');
    expect(body.valid).toBe(true);
    expect(fleet.replicas.map((each) => each.output()).join('')).not.toMatch(/deadlock|internal_error/);
    const last = await apply(replica(0), { owner, force: true, prune: true, config: config(99) });
    expect(last.status).toBe(200);
    expect((await apply(replica(1), { owner, prune: true, config: config(99) })).body.changes).toEqual([]);
  });
});
