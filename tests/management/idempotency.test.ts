import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { StoreUnavailable } from '../../src/errors.ts';
import type { WindowCounters } from '../../src/limiter/window-counters.ts';
import { ENDPOINTS } from '../../src/management/endpoints.ts';
import { createEmbeddedRecords } from '../support/records.ts';
import { until } from '../support/until.ts';
import {
  type Replacements,
  startManagement,
  type TestManagement,
  UNUSED,
  usageThat,
} from './start-management.ts';

const CREATE = '/consumer-api-key/create';
const DAY_MS = 86_400_000;

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

let keysMade = 0;
function newKey(): string {
  keysMade += 1;
  return `idempotency-key-${keysMade}`;
}

function post(path: string, key: string, body: object = {}) {
  return management.send('post', path, body).set('Idempotency-Key', key);
}

async function keysNamed(name: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*) AS count FROM consumer_keys WHERE name = ${name}`.execute(management.records.db);
  return Number(rows[0]?.count);
}

describe('a POST with an Idempotency-Key', () => {
  it('is performed once: sent again, it has the response of the first time', async () => {
    const key = newKey();
    const first = await post(CREATE, key, { name: 'once' }).expect(201);
    const second = await post(CREATE, key, { name: 'once' }).expect(201);
    expect(first.headers).not.toHaveProperty('idempotency-replayed');
    expect(second.headers['idempotency-replayed']).toBe('true');
    expect(second.text).toBe(first.text);
    for (const header of ['location', 'etag', 'content-type', 'cache-control', 'content-length']) {
      expect(second.headers[header]).toBe(first.headers[header]);
    }
    expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
    expect(await keysNamed('once')).toBe(1);
  });

  it('makes one key when it comes five times at once', async () => {
    const key = newKey();
    const responses = await Promise.all(
      Array.from({ length: 5 }, () => post(CREATE, key, { name: 'at once' })),
    );
    const made = responses.filter(({ status }) => status === 201);
    const rejected = responses.filter(({ status }) => status !== 201);
    expect(new Set(made.map(({ body }) => body.secret)).size).toBe(1);
    for (const { status, body, headers } of rejected) {
      expect([status, body.code, headers['retry-after']]).toEqual([409, 'idempotency_in_progress', '1']);
    }
    expect(await keysNamed('at once')).toBe(1);
    expect((await post(CREATE, key, { name: 'at once' }).expect(201)).body).toEqual(made[0]?.body);
  });

  it.each([
    ['another body', CREATE, { name: 'another' }],
    ['another path', '/rate-limit/create', { rateLimitId: 'r', description: '', limit: 1, period: 'day' }],
  ])('is 422 with %s', async (_what, path, body) => {
    const key = newKey();
    await post(CREATE, key, { name: 'reused' }).expect(201);
    const response = await post(path, key, body).expect(422);
    expect(response.body.code).toBe('idempotency_key_reused');
    expect(response.headers).not.toHaveProperty('idempotency-replayed');
    await post(CREATE, key, { name: 'reused' }).expect(201);
  });

  it('is performed again after 24 hours', async () => {
    const key = newKey();
    const first = await post(CREATE, key, { name: 'daily' }).expect(201);
    management.clock.advance(DAY_MS);
    expect((await post(CREATE, key, { name: 'daily' }).expect(201)).body).toEqual(first.body);
    management.clock.advance(1);
    expect((await post(CREATE, key, { name: 'daily' }).expect(201)).body.id).not.toBe(first.body.id);
  });

  it('keeps a rejection of the request alone, in the format of each sending', async () => {
    const key = newKey();
    const body = { consumerApiKeyId: 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV', rateLimitId: 'none' };
    const first = await post('/api-keys/apply-rate-limit', key, body).expect(404);
    const second = await post('/api-keys/apply-rate-limit', key, body).expect(404);
    expect([second.body, second.headers['idempotency-replayed']]).toEqual([first.body, 'true']);
    const third = await post('/api-keys/apply-rate-limit', key, body)
      .set('Accept', 'application/problem+json')
      .expect(404);
    expect(third.body).toMatchObject({ status: 404, detail: first.body.error, code: 'key_not_found' });
  });

  it('keeps the list of faults of a rejected body', async () => {
    const key = newKey();
    const plan = { rateLimitId: 'x', description: '', limit: 1, period: 'day' };
    const limits = [1, 2].map((limit) => ({ limitId: 'same', limit, period: 'hour' }));
    const body = { ...plan, additionalLimits: limits };
    const first = await post('/rate-limit/create', key, body).expect(400);
    const second = await post('/rate-limit/create', key, body).expect(400);
    expect(first.body.errors).toHaveLength(1);
    expect([second.body, second.headers['idempotency-replayed']]).toEqual([first.body, 'true']);
  });

  it('may be sent again with the same key after its body was mended', async () => {
    const key = newKey();
    await post(CREATE, key, { name: '' }).expect(400);
    await post(CREATE, key, { name: 'mended' }).expect(201);
  });

  it('needs valid credentials each time', async () => {
    const key = newKey();
    await management.bare('post', CREATE).set('Idempotency-Key', key).send({ name: 'n' }).expect(401);
    await post(CREATE, key, { name: 'n' }).expect(201);
    await management.bare('post', CREATE).set('Idempotency-Key', key).send({ name: 'n' }).expect(401);
  });

  it.each(['', ' ', 'a b', 'ä', 'x'.repeat(256), 'a, b'])('is 400 with the key %j', async (key) => {
    const { body } = await post(CREATE, key, { name: 'n' }).expect(400);
    expect(body.code).toBe('bad_request');
  });

  it.each(['x', '"8e03978e-40d5-43dd-bc93-6894a57f9324"', '~'.repeat(255)])(
    'takes the key %j',
    async (key) => {
      await post(CREATE, key, { name: 'n' }).expect(201);
    },
  );

  it.each([
    ['other tags', { onlyTags: ['team:a'] }],
    ['fewer scopes', { scopes: ['keys:write'] }],
  ])('is not repeated to a token that was limited to %s meanwhile', async (_what, limits) => {
    const token = await management.createToken({ scopes: ['keys:read', 'keys:write'] });
    const { id } = await management.createKey();
    const path = `/consumer-api-key/${id}/rotate`;
    const key = newKey();
    const rotate = () =>
      management.sendAs(token.secret, 'post', path, { graceSeconds: 0 }).set('Idempotency-Key', key);
    const { body } = await rotate().expect(200);
    const change = (changes: object) =>
      management.send('patch', `/tollgate/admin-token/${token.adminTokenId}`, changes).expect(200);
    await change(limits);
    const rejected = await rotate().expect(422);
    expect(rejected.body.code).toBe('idempotency_key_reused');
    expect(rejected.text).not.toContain(body.secret);
    await change({ onlyTags: [], scopes: ['keys:read', 'keys:write', 'keys:delete'] });
    expect((await rotate().expect(200)).body).toEqual(body);
  });

  it('leaves neither key nor response in the store in the clear', async () => {
    const key = newKey();
    const { body } = await post(CREATE, key, { name: 'sealed' }).expect(201);
    const { rows } = await sql<{ row: string }>`
      SELECT encode(id, 'escape') || encode(sealed, 'escape') AS row FROM idempotent_responses`.execute(
      management.records.db,
    );
    const stored = rows.map(({ row }) => row).join('\n');
    for (const text of [key, body.secret, body.id, 'sealed']) expect(stored).not.toContain(text);
  });
});

it('a grant that is sent again with its Idempotency-Key is made once', async () => {
  const { id } = await management.createKey();
  const key = newKey();
  const grant = () => post(`/consumer-api-key/${id}/limits/grant`, key, { requests: 5 }).expect(200);
  await grant();
  const { body } = await grant();
  expect(body.limits[0].granted).toBe(5);
  const shown = await management.send('get', `/consumer-api-key/${id}/limits`).expect(200);
  expect(shown.body.limits[0].granted).toBe(5);
});

it('a search that finds no key has an entry in the audit log', async () => {
  const find = { secret: `tg_${'0'.repeat(36)}` };
  const { headers } = await post('/api-keys/find', newKey(), find).expect(404);
  const { body } = await management.send('get', '/tollgate/audit-log?action=key.find').expect(200);
  expect(body.entries).toMatchObject([
    { requestId: headers['x-request-id'], outcome: 'key_not_found', target: { type: 'operation' } },
  ]);
});

it('no endpoint that could be sent again streams its response', () => {
  expect(ENDPOINTS.filter(({ method, csv }) => method === 'post' && csv)).toEqual([]);
});

it('a PATCH ignores the Idempotency-Key', async () => {
  const { id } = await management.createKey();
  const key = newKey();
  const rename = (name: string) =>
    management.send('patch', `/consumer-api-key/${id}`, { name }).set('Idempotency-Key', key);
  await rename('one').expect(200);
  expect((await rename('two').expect(200)).body.name).toBe('two');
});

describe('while a store is down or slow', () => {
  const running: TestManagement[] = [];
  afterAll(async () => {
    for (const each of running) await each.stop();
  });
  async function start(replacements: Replacements): Promise<TestManagement> {
    const started = await startManagement(replacements);
    running.push(started);
    return started;
  }

  /** Counters that change as `change` says, by a grant or a reset. */
  function countersThat(change: () => Promise<void>): WindowCounters {
    return {
      read: async () => ({ counters: [], nowMs: 0 }),
      readAll: async () => [],
      settle: async () => ({ used: [], nowMs: 0 }),
      passOnce: async () => true,
      grant: change,
      reset: change,
    };
  }

  /** All grants and resets wait until `redis` is resolved; `waiting` counts them. */
  async function startWithSlowRedis() {
    const redis = Promise.withResolvers<void>();
    let waiting = 0;
    const counters = countersThat(() => {
      waiting += 1;
      return redis.promise;
    });
    return { other: await start({ counters }), redis, waiting: () => waiting };
  }

  it('nothing is kept: the request is performed when the store is back', async () => {
    let isUnavailable = true;
    const counters = countersThat(async () => {
      if (isUnavailable) throw new StoreUnavailable('redis', new Error('unavailable'));
    });
    const other = await start({ counters, usage: usageThat(async () => UNUSED) });
    const { id } = await other.createKey();
    const grant = () =>
      other
        .send('post', `/consumer-api-key/${id}/limits/grant`, { requests: 5 })
        .set('Idempotency-Key', 'the-same');
    await grant().expect(503);
    isUnavailable = false;
    const { headers } = await grant().expect(200);
    expect(headers).not.toHaveProperty('idempotency-replayed');
  });

  it('a grant that failed is in the audit log, with its outcome', async () => {
    const other = await start({
      counters: countersThat(async () => {
        throw new StoreUnavailable('redis', new Error('unavailable'));
      }),
    });
    const { id } = await other.createKey();
    const { headers } = await other
      .send('post', `/consumer-api-key/${id}/limits/grant`, { requests: 5 })
      .set('Idempotency-Key', 'the-same')
      .expect(503);
    const { body } = await other.send('get', '/tollgate/audit-log?action=limits.grant').expect(200);
    const requestId = headers['x-request-id'];
    expect(body.entries).toMatchObject([
      { requestId, outcome: 'store_unavailable' },
      { requestId, outcome: 'success' },
    ]);
  });

  it('grants that wait for Redis hold up no other change', async () => {
    const { other, redis, waiting } = await startWithSlowRedis();
    const changed = await other.createKey();
    const { id } = await other.createKey();
    // As many as there are connections to Postgres, and more.
    const grants = Array.from({ length: 20 }, async (_, index) =>
      other
        .send('post', `/consumer-api-key/${id}/limits/grant`, { requests: 5 })
        .set('Idempotency-Key', `grant-${index}`),
    );
    try {
      await until(() => waiting() === grants.length);
      await other.send('patch', `/consumer-api-key/${changed.id}`, { name: 'changed' }).expect(200);
    } finally {
      redis.resolve();
      expect((await Promise.all(grants)).map(({ status }) => status)).toEqual(grants.map(() => 200));
    }
  });

  it('another body is rejected while the first request waits for Redis', async () => {
    const { other, redis, waiting } = await startWithSlowRedis();
    const { id } = await other.createKey();
    const grant = (requests: number) =>
      other
        .send('post', `/consumer-api-key/${id}/limits/grant`, { requests })
        .set('Idempotency-Key', 'the-same');
    const first = grant(5).then((response) => response);
    try {
      await until(() => waiting() === 1);
      expect((await grant(5).expect(409)).body.code).toBe('idempotency_in_progress');
      expect((await grant(6).expect(422)).body.code).toBe('idempotency_key_reused');
    } finally {
      redis.resolve();
    }
    expect((await first).status).toBe(200);
    expect((await grant(5).expect(200)).headers['idempotency-replayed']).toBe('true');
    expect(waiting()).toBe(1);
  });

  it('a request whose first sending never ended is performed after ten seconds', async () => {
    const redis = Promise.withResolvers<void>();
    let calls = 0;
    const other = await start({
      counters: countersThat(async () => {
        calls += 1;
        if (calls === 1) await redis.promise;
      }),
    });
    const { id } = await other.createKey();
    const grant = () =>
      other
        .send('post', `/consumer-api-key/${id}/limits/grant`, { requests: 5 })
        .set('Idempotency-Key', 'the-same');
    const first = grant().then((response) => response);
    try {
      await until(() => calls === 1);
      expect((await grant().expect(409)).headers['retry-after']).toBe('10');
      other.clock.advance(9_999);
      expect((await grant().expect(409)).headers['retry-after']).toBe('1');
      other.clock.advance(1);
      expect((await grant().expect(200)).headers).not.toHaveProperty('idempotency-replayed');
    } finally {
      redis.resolve();
    }
    expect((await first).status).toBe(200);
    expect((await grant().expect(200)).headers['idempotency-replayed']).toBe('true');
    expect(calls).toBe(2);
  });

  it('an unexpected failure is not kept either', async () => {
    let fails = true;
    const counters = countersThat(async () => {
      if (fails) throw new Error('a fault');
    });
    const other = await start({ counters });
    const { id } = await other.createKey();
    const reset = () =>
      other.send('post', `/consumer-api-key/${id}/limits/reset`, {}).set('Idempotency-Key', 'the-same');
    await reset().expect(500);
    fails = false;
    await reset().expect(200);
  });
});

describe('a POST with an Idempotency-Key that changes records', () => {
  it('reads and writes in one transaction only, at every endpoint', async () => {
    // A second transaction would wait for the first one for ever.
    const store = await createEmbeddedRecords();
    const embedded = await startManagement({ records: store.records });
    const called = new Set<string>();
    const failures: string[] = [];
    const call = async (path: string, body: object, ids: readonly string[] = []) => {
      called.add(path);
      const target = ids.reduce((filled, id) => filled.replace(/\{\w+\}/, id), path);
      const response = await embedded.send('post', target, body).set('Idempotency-Key', newKey());
      if (response.status >= 300) failures.push(`${path}: ${response.body.code}`);
      return response;
    };
    try {
      const plan = { rateLimitId: 'small', description: 'small', limit: 5, period: '1hour' };
      await call('/rate-limit/create', plan);
      const { body: key } = await call(CREATE, { name: 'one', rateLimitId: 'small' });
      const id = [key.id];
      await call('/api-keys/import', {
        keys: [{ name: 'imported', secret: 'a-secret-from-elsewhere-of-32-chars' }],
      });
      await call(CREATE, { name: 'handed over', handover: { ttlSeconds: 60 } });
      await call('/consumer-api-key/{consumerApiKeyId}/handover', { ttlSeconds: 60 }, id);
      const rotation = { graceSeconds: 60, handover: { ttlSeconds: 60 } };
      await call('/consumer-api-key/{consumerApiKeyId}/rotate', rotation, id);
      await call('/consumer-api-key/{consumerApiKeyId}/end-rotation', { keep: 'new' }, id);
      await call('/api-keys/apply-rate-limit', { rateLimitId: 'small', consumerApiKeyId: key.id });
      const { body: job } = await call('/api-keys/bulk', { ids: id, action: 'disable' });
      await call('/tollgate/job/{jobId}/cancel', {}, [job.jobId]);
      const configuration = { owner: 'tests', config: { plans: [{ ...plan, rateLimitId: 'managed' }] } };
      await call('/tollgate/config/diff', configuration);
      await call('/tollgate/config/apply', configuration);
      const { body: webhook } = await call('/tollgate/webhook/create', {
        ...{ url: 'https://1.1.1.1/', events: ['tollgate.key.*'] },
      });
      const webhookId = [webhook.webhookId];
      await call('/tollgate/webhook/{webhookId}/test', {}, webhookId);
      await call('/tollgate/webhook/{webhookId}/rotate', { graceSeconds: 0 }, webhookId);
      await call('/tollgate/webhook/{webhookId}/deliveries/{deliveryId}/resend', {}, [...webhookId, 'dlv_0']);
      const { body: token } = await call('/tollgate/admin-token/create', {
        name: 'one',
        scopes: ['keys:read'],
      });
      await call('/tollgate/admin-token/{adminTokenId}/rotate', { graceSeconds: 0 }, [token.adminTokenId]);
      const inTransactions = ENDPOINTS.filter(
        ({ method, withoutTransaction }) => method === 'post' && withoutTransaction !== true,
      );
      expect(failures).toEqual([
        '/tollgate/webhook/{webhookId}/deliveries/{deliveryId}/resend: delivery_not_found',
      ]);
      expect([...called].toSorted()).toEqual(inTransactions.map(({ path }) => path).toSorted());
    } finally {
      await embedded.stop();
      await store.remove();
    }
  });
});
