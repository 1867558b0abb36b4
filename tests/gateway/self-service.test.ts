import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { requireDocumented } from '../support/documented-responses.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN, type RunningGateway, startGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { until } from '../support/until.ts';

const SELF = '/tollgate/self';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startInProcessFleet(2);
});
afterAll(() => fleet?.stop());

interface SelfResponse {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
  readonly body: any;
}

async function ask(
  path: string,
  secret: string | undefined,
  { replica = 0, ...init }: RequestInit & { replica?: number; headers?: Record<string, string> } = {},
): Promise<SelfResponse> {
  const headers = { ...(secret !== undefined && { authorization: `Bearer ${secret}` }), ...init.headers };
  const response = await fetch(`${fleet.replicas[replica]?.url}${path}`, { ...init, headers });
  const sent = await response.text();
  const body = sent.startsWith('{') ? JSON.parse(sent) : sent;
  const { status, headers: received } = response;
  const type = received.get('content-type') ?? '';
  requireDocumented(init.method ?? 'GET', path, { status, type, body });
  return { status, headers: received, body };
}

/** The same, as soon as the key may ask again. */
async function askSoon(...parameters: Parameters<typeof ask>): Promise<SelfResponse> {
  let response = await ask(...parameters);
  await until(async () => {
    if (response.status === 429) response = await ask(...parameters);
    return response.status !== 429;
  });
  return response;
}

async function use(secret: string, replica = 0): Promise<number> {
  const response = await fetch(`${fleet.replicas[replica]?.url}/orders`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  await response.text();
  return response.status;
}

/** What is sent to a raw request. */
async function raw(request: string, url = fleet.replicas[0]?.url): Promise<string> {
  const { hostname, port } = new URL(url ?? '');
  const socket = connect(Number(port), hostname);
  socket.write(request);
  return text(socket);
}

describe('an error of self-service', () => {
  it.each([
    ['of the path', `${SELF}/nothing`, 404, 'not_found', {}],
    ['of the method', SELF, 405, 'method_not_allowed', { method: 'DELETE' }],
    ['of the credentials', SELF, 401, 'missing_api_key', {}],
  ])('%s has problem details for who asks for them', async (_of, path, status, code, init) => {
    const problem = await ask(path, undefined, { ...init, headers: { accept: 'application/problem+json' } });
    expect(problem.headers.get('content-type')).toBe('application/problem+json');
    expect([problem.status, problem.headers.get('vary')?.includes('Accept')]).toEqual([status, true]);
    expect(problem.body).toMatchObject({ status, code, type: `urn:problem-type:tollgate:${code}` });
    const usual = await ask(path, undefined, init);
    expect(usual.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(usual.body).toEqual({ error: expect.any(String), code });
  });

  it('of an endpoint has problem details as well', async () => {
    const { secret } = await fleet.admin.makeKey('asks for too much');
    const path = `${SELF}/usage?interval=never`;
    const problem = await askSoon(path, secret, { headers: { accept: 'application/problem+json' } });
    expect(problem.headers.get('content-type')).toBe('application/problem+json');
    expect(problem.body).toMatchObject({ status: 400, code: 'invalid_parameter' });
  });
});

describe('a credential of the management interface', () => {
  it('is no key: neither the root token nor an admin token', async () => {
    const token = { name: 'all', scopes: ['read-only', 'keys:write', 'keys:secret'], onlyTags: ['eu'] };
    const { body } = await fleet.admin.call('POST', '/tollgate/admin-token/create', token);
    for (const credential of [body.secret, ROOT_TOKEN]) {
      for (const path of [SELF, `${SELF}/usage`]) {
        const response = await ask(path, credential);
        expect([response.status, response.body.code]).toEqual([401, 'invalid_api_key']);
      }
    }
  });
});

describe('a consumer', () => {
  it('sees its own key: its limits and its use, and nothing of that is counted', async () => {
    await fleet.admin.makePlan('self-plan', 10, 'hour');
    const { id, secret } = await fleet.admin.makeKey('Mobile app', 'self-plan');
    expect([await use(secret), await use(secret, 1)]).toEqual([200, 200]);
    const reached = fleet.backendRequests();
    // What the other replica has counted arrives a moment later.
    await until(async () => (await askSoon(SELF, secret)).body.usage.totalRequests === 2);
    const first = await askSoon(SELF, secret);
    expect(first.status).toBe(200);
    expect(first.body).toEqual({
      consumerApiKeyId: id,
      name: 'Mobile app',
      expiresAt: null,
      rotation: null,
      selfService: [],
      rateLimitId: 'self-plan',
      limits: [
        {
          limitId: 'main',
          limit: 10,
          baseLimit: 10,
          period: 'hour',
          per: 'key',
          mode: 'enforce',
          used: 2,
          granted: 0,
          remaining: 8,
          resetTime: expect.any(String),
          open: true,
        },
      ],
      usage: { totalRequests: 2, successfulRequests: 2, failedRequests: 0 },
    });
    expect(first.headers.get('cache-control')).toBe('no-store');
    expect(first.headers.get('x-request-id')).toMatch(/./);
    expect(first.headers.get('x-ratelimit-limit')).toBeNull();
    expect((await askSoon(SELF, secret, { replica: 1 })).body).toEqual(first.body);
    expect(fleet.backendRequests()).toBe(reached);
    const { usage } = await fleet.admin.detail(id);
    expect(usage).toMatchObject({ totalRequests: 2, rateLimits: { remaining: 8 } });
  });

  it('sees its key whatever If-None-Match says', async () => {
    const { secret } = await fleet.admin.makeKey('polls');
    // `fetch` would add `Cache-Control: no-cache`.
    const head = `HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\nIf-None-Match: *\r\nConnection: close\r\n\r\n`;
    expect(await raw(`GET ${SELF} ${head}`)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*"name":"polls"/s);
    expect(await raw(`HEAD ${SELF} ${head}`)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n$/s);
  });

  it('sees its use over time, as JSON or CSV', async () => {
    const { secret } = await fleet.admin.makeKey('usage');
    const { secret: other } = await fleet.admin.makeKey('other');
    await Promise.all([use(secret), use(other), use(other)]);
    await until(async () => (await askSoon(SELF, secret)).body.usage.totalRequests === 1);
    const { body } = await askSoon(`${SELF}/usage?interval=total`, secret);
    expect(body).toMatchObject({
      interval: 'total',
      timeZone: 'UTC',
      rows: [{ requests: 1, successful: 1 }],
    });
    const csv = await askSoon(`${SELF}/usage?interval=total`, secret, { headers: { accept: 'text/csv' } });
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(csv.body).toMatch(/^start,requests,/);
    const wrong = await askSoon(`${SELF}/usage?intervall=day`, secret);
    expect([wrong.status, wrong.body.code]).toEqual([400, 'invalid_parameter']);
    const foreign = await askSoon(`${SELF}/usage?consumerApiKeyId=key_1`, secret);
    expect([foreign.status, foreign.body.code]).toEqual([400, 'invalid_parameter']);
  });

  it('may ask five times a second, over all replicas, and use its key all the same', async () => {
    let secret = '';
    let all: readonly SelfResponse[] = [];
    const isQuick = async () => {
      ({ secret } = await fleet.admin.makeKey('eager'));
      const startedAt = performance.now();
      expect((await ask(SELF, secret)).status).toBe(200);
      all = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(SELF, secret, { replica: n % 2 })));
      return performance.now() - startedAt < 3000;
    };
    // In less time it meets three windows of a second at most.
    await until(isQuick);
    const limited = all.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThanOrEqual(40 - 3 * 5);
    expect(limited[0]?.body.code).toBe('too_many_requests');
    expect(limited[0]?.headers.get('retry-after')).toBe('1');
    expect(limited[0]?.headers.get('ratelimit')).toBeNull();
    expect(await use(secret)).toBe(200);
    expect((await askSoon(SELF, secret)).status).toBe(200);
  });

  it('without a valid key gets what the proxy responds', async () => {
    const { id, secret } = await fleet.admin.makeKey('invalid');
    const invalid = `tg_${'0'.repeat(36)}`;
    for (const credential of [undefined, 'garbage', invalid]) {
      const [own, proxied] = [await ask(SELF, credential), await ask('/orders', credential)];
      expect(own.status).toBe(401);
      expect(own.body).toEqual(proxied.body);
      expect(own.headers.get('www-authenticate')).toBe(proxied.headers.get('www-authenticate'));
    }
    for (const [changes, code] of [
      [{ enabled: false }, 'key_disabled'],
      [{ enabled: true, allowedIps: ['192.0.2.1'] }, 'address_not_allowed'],
      [{ allowedIps: null, allowedOrigins: ['https://app.example.com'] }, 'origin_not_allowed'],
    ] as const) {
      await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, changes);
      const headers = { origin: 'https://other.example.com' };
      expect((await ask(SELF, secret, { replica: 1, headers })).body.code).toBe(code);
    }
    await fleet.admin.deleteKey(id);
    expect((await ask(SELF, secret, { replica: 1 })).body.code).toBe('invalid_api_key');
    expect((await ask(SELF, 'the-root-token-of-the-tests-0123456789')).status).toBe(401);
  });

  it('may ask from a page that its key allows', async () => {
    const { body: made } = await fleet.admin.call('POST', '/consumer-api-key/create', {
      name: 'page',
      allowedOrigins: ['https://app.example.com'],
    });
    const headers = { origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' };
    const preflight = await ask(SELF, undefined, {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-method': 'GET' },
    });
    expect(preflight.status).toBe(204);
    const response = await ask(SELF, made.secret, { headers });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('https://app.example.com');
    expect(response.headers.get('vary')).toBe('Origin');
    expect(response.headers.get('access-control-expose-headers')).toContain('retry-after');
    const error = await ask(`${SELF}/usage?from=nonsense`, made.secret, { headers });
    expect([error.status, error.headers.get('vary')]).toEqual([400, 'Origin, Accept']);
    expect(error.headers.get('access-control-allow-origin')).toBe('https://app.example.com');
  });

  it.each([
    ['HEAD', SELF, 200, undefined],
    ['POST', SELF, 405, 'GET, HEAD'],
    ['OPTIONS', SELF, 405, 'GET, HEAD'],
    ['DELETE', `${SELF}/usage`, 405, 'GET, HEAD'],
    ['GET', `${SELF}/`, 404, undefined],
    ['GET', `${SELF}/limits`, 404, undefined],
    ['GET', `${SELF}/usage/`, 404, undefined],
    ['GET', '/tollgate/%73elf', 404, undefined],
    ['GET', '/tollgate//self/%75sage', 404, undefined],
  ])('that sends %s %s gets %d, and nothing is forwarded', async (method, path, status, allow) => {
    const { secret } = await fleet.admin.makeKey('methods');
    const reached = fleet.backendRequests();
    const response = await ask(path, secret, { method });
    expect(response.status).toBe(status);
    if (allow !== undefined) expect(response.headers.get('allow')).toBe(allow);
    if (method === 'HEAD') expect(response.body).toBe('');
    expect(fleet.backendRequests()).toBe(reached);
  });

  it('that sends several keys, an upgrade, or HTTP/1.0 is responded to as anywhere', async () => {
    const { secret } = await fleet.admin.makeKey('raw');
    const line = `Authorization: Bearer ${secret}\r\n`;
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n';
    expect(await raw(`GET ${SELF} HTTP/1.1\r\nHost: a\r\n${line}${line}\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await raw(`GET ${SELF} HTTP/1.1\r\nHost: a\r\n${line}${upgrade}\r\n`)).toMatch(/^HTTP\/1\.1 404 /);
    expect(await raw(`GET ${SELF} HTTP/1.0\r\n${line}\r\n`)).toMatch(/^HTTP\/1\.1 200 .*"name":"raw"/s);
  });
});

describe('a consumer that may rotate its key', () => {
  const rotate = (
    secret: string,
    body: object,
    options: { replica?: number; headers?: Record<string, string> } = {},
  ) =>
    askSoon(`${SELF}/rotate`, secret, {
      ...options,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...options.headers },
      body: JSON.stringify(body),
    });

  async function rotatableKey() {
    const { body } = await fleet.admin.call('POST', '/consumer-api-key/create', {
      name: 'Rotating app',
      selfService: ['rotate'],
    });
    return body as { readonly id: string; readonly secret: string };
  }

  it('gets another secret for the same key, beside which the one before stays valid', async () => {
    const { id, secret } = await rotatableKey();
    const { status, headers, body } = await rotate(secret, { graceSeconds: 600 });
    expect([status, body.consumerApiKeyId]).toEqual([200, id]);
    expect(headers.get('cache-control')).toBe('no-store');
    expect([await use(secret, 1), await use(body.secret, 1)]).toEqual([200, 200]);
    const own = (await askSoon(SELF, body.secret)).body;
    expect(own).toMatchObject({
      consumerApiKeyId: id,
      rotation: { previousValidUntil: body.previousValidUntil },
    });
    const again = await rotate(body.secret, { graceSeconds: 0 });
    expect([again.status, again.body.code]).toEqual([409, 'rotation_in_progress']);
  });

  it('is noted as a user of the secret before, so that its rotation is not ended too soon', async () => {
    const { id, secret } = await rotatableKey();
    const { body } = await rotate(secret, { graceSeconds: 600 });
    const lastUsed = async () => (await fleet.admin.detail(id)).rotation.previousLastUsedAt;
    expect((await askSoon(SELF, body.secret)).status).toBe(200);
    expect(await lastUsed()).toBeNull();
    expect((await askSoon(SELF, secret, { replica: 1 })).status).toBe(200);
    await until(async () => (await lastUsed()) !== null);
  });

  it('gets none for the secret before, also if its grace ends during the request', async () => {
    const database = new Client(fleet.databaseUrl);
    await database.connect();
    let found = 503;
    let newest = '';
    // Without a connection to Postgres in time it is 503, which shows nothing.
    while (found === 503) {
      const { secret } = await rotatableKey();
      const { body } = await rotate(secret, { graceSeconds: 1 });
      newest = body.secret;
      await askSoon(SELF, secret);
      await database.query('begin; lock table consumer_keys in access exclusive mode');
      const late = rotate(secret, { graceSeconds: 0 });
      await until(async () => Date.now() > Date.parse(body.previousValidUntil));
      await database.query('commit');
      found = (await late).status;
    }
    await database.end();
    expect(found).toBe(401);
    expect(await use(newest)).toBe(200);
  });

  /** Holds the body of a rotation back until `change` is made, and resolves with the response. */
  async function rotateAround(secret: string, change: () => Promise<unknown>): Promise<string> {
    const body = JSON.stringify({ graceSeconds: 0 });
    const client = await RawPeer.connect(Number(new URL(fleet.replicas[0]?.url ?? '').port));
    client.send(
      `POST ${SELF}/rotate HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`,
    );
    await client.until((text) => text.includes('100 Continue'));
    await change();
    client.send(body);
    return client.ended();
  }

  it('gets none for a secret that was rotated away while its body was held back', async () => {
    const { id, secret } = await rotatableKey();
    let newest = '';
    const response = await rotateAround(secret, async () => {
      const rotated = await fleet.admin.call('POST', `/consumer-api-key/${id}/rotate`, { graceSeconds: 0 });
      newest = rotated.body.secret;
    });
    expect(response).toMatch(/HTTP\/1\.1 401 [\s\S]*"invalid_api_key"/);
    expect([await use(secret), await use(newest)]).toEqual([401, 200]);
  });

  it('gets none from an address that was taken from the key while its body was held back', async () => {
    const { id, secret } = await rotatableKey();
    const key = `/consumer-api-key/${id}`;
    const response = await rotateAround(secret, () =>
      fleet.admin.call('PATCH', key, { allowedIps: ['203.0.113.9'] }),
    );
    expect(response).toMatch(/HTTP\/1\.1 403 [\s\S]*"address_not_allowed"/);
    await fleet.admin.call('PATCH', key, { allowedIps: null });
    expect(await use(secret)).toBe(200);
  });

  it.each([
    ['without', {}],
    ['with', { 'idempotency-key': 'rotate-once' }],
  ])(
    'gets none %s an Idempotency-Key for a secret that is rotated away meanwhile',
    async (_what, headers) => {
      const database = new Client(fleet.databaseUrl);
      await database.connect();
      // Within a transaction, Postgres shows the same activity again.
      const observer = new Client(fleet.databaseUrl);
      await observer.connect();
      const isWaiting = async (count: number) => {
        const { rows } = await observer.query(
          `select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and query like '%consumer_keys%'`,
        );
        return rows.length >= count;
      };
      let statuses = [503];
      // On a busy machine a statement may wait for longer than its five seconds, which shows nothing.
      while (statuses.includes(503)) {
        const { id, secret } = await rotatableKey();
        await database.query('begin');
        await database.query('select from consumer_keys where id = $1 for update', [id]);
        let settled = 0;
        const counted = <Response>(response: Promise<Response>) =>
          response.finally(() => {
            settled += 1;
          });
        const byAdmin = counted(
          fleet.admin.call('POST', `/consumer-api-key/${id}/rotate`, { graceSeconds: 0 }),
        );
        await until(async () => settled > 0 || (await isWaiting(1)));
        const own = counted(rotate(secret, { graceSeconds: 0 }, { headers }));
        await until(async () => settled > 0 || (await isWaiting(2)));
        await database.query('commit');
        const [rotated, rejected] = await Promise.all([byAdmin, own]);
        statuses = [rotated.status, rejected.status];
        if (statuses.includes(503)) continue;
        expect(rejected).toMatchObject({ status: 401, body: { code: 'invalid_api_key' } });
        expect([await use(secret), await use(rotated.body.secret)]).toEqual([401, 200]);
      }
      await Promise.all([database.end(), observer.end()]);
    },
  );

  it('has one entry in the audit log for it, which names the key as its actor', async () => {
    const { id, secret } = await rotatableKey();
    const { body } = await rotate(secret, { graceSeconds: 0 }, { headers: { 'x-audit-reason': 'monthly' } });
    expect([await use(secret), await use(body.secret)]).toEqual([401, 200]);
    const database = new Client(fleet.databaseUrl);
    await database.connect();
    const { rows } = await database.query(
      `select actor_type, actor_id, actor_name, reason, audit_log::text as whole from audit_log where target_id = $1 and action = 'key.rotate'`,
      [id],
    );
    await database.end();
    expect(rows).toMatchObject([
      { actor_type: 'key', actor_id: id, actor_name: 'Rotating app', reason: 'monthly' },
    ]);
    for (const value of [secret, body.secret]) expect(rows[0].whole).not.toContain(value);
  });

  it('rotates once when it asks on two replicas at the same time', async () => {
    const { secret } = await rotatableKey();
    const both = await Promise.all(
      [0, 1].map((replica) => rotate(secret, { graceSeconds: 60 }, { replica })),
    );
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409]);
  });

  it('gets the same secret again when it sends a request again', async () => {
    const { secret } = await rotatableKey();
    const headers = { 'idempotency-key': 'first-rotation' };
    const first = await rotate(secret, { graceSeconds: 60 }, { headers });
    const second = await rotate(secret, { graceSeconds: 60 }, { headers, replica: 1 });
    expect(second.body).toEqual(first.body);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    const stranger = await rotatableKey();
    const other = await rotate(stranger.secret, { graceSeconds: 60 }, { headers });
    expect(other.headers.get('idempotency-replayed')).toBeNull();
    expect(other.body.consumerApiKeyId).toBe(stranger.id);
  });

  it('has no failure of its requests stored, so that it is performed when sent again', async () => {
    const { id, secret } = await rotatableKey();
    const { body } = await rotate(secret, { graceSeconds: 600 });
    const headers = { 'idempotency-key': 'during-a-rotation' };
    expect((await rotate(body.secret, { graceSeconds: 0 }, { headers })).status).toBe(409);
    await fleet.admin.call('POST', `/consumer-api-key/${id}/end-rotation`, { keep: 'new' });
    const again = await rotate(body.secret, { graceSeconds: 0 }, { headers });
    expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, null]);
  });

  it('may not change its expiry, and must say how long the secret before stays valid', async () => {
    const { secret } = await rotatableKey();
    for (const [body, field] of [
      [{}, 'graceSeconds'],
      [{ graceSeconds: 2_592_001 }, 'graceSeconds'],
      [{ graceSeconds: 0, expiresAt: null }, 'expiresAt'],
      [{ graceSeconds: 0, secret: 'mine' }, 'secret'],
    ] as const) {
      const response = await rotate(secret, body);
      expect([response.status, response.body.errors[0].field]).toEqual([400, field]);
    }
    expect((await askSoon(`${SELF}/rotate`, secret)).headers.get('allow')).toBe('POST');
  });

  it('may do so only as long as an administrator allows it, on every replica', async () => {
    const { id, secret } = await rotatableKey();
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { selfService: null });
    const { status, body } = await rotate(secret, { graceSeconds: 0 }, { replica: 1 });
    expect([status, body.code, body.requiredScope]).toEqual([403, 'missing_scope', 'rotate']);
    expect(await use(secret)).toBe(200);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { selfService: ['rotate'] });
    expect((await rotate(secret, { graceSeconds: 0 }, { replica: 1 })).status).toBe(200);
  });
});

it('a consumer that is rejected over and over has one entry in the audit log', async () => {
  const { id, secret } = await fleet.admin.makeKey('persistent');
  for (const replica of [0, 1, 0]) {
    const { status, body } = await askSoon(`${SELF}/rotate`, secret, {
      ...{ replica, method: 'POST', body: JSON.stringify({ graceSeconds: 0 }) },
      headers: { 'content-type': 'application/json' },
    });
    expect([status, body.code]).toEqual([403, 'missing_scope']);
  }
  const { body } = await fleet.admin.call('GET', `/tollgate/audit-log?actorId=${id}`);
  expect(body.entries).toMatchObject([{ action: 'request.deny', outcome: 'missing_scope' }]);
});

describe('self-service', () => {
  const open: RunningGateway[] = [];
  afterAll(async () => {
    for (const gateway of open) await gateway.stop();
  });

  function ends(gateway: RunningGateway): RunningGateway {
    open.push(gateway);
    return gateway;
  }

  async function start(settings: Readonly<Record<string, string>>): Promise<RunningGateway> {
    return ends(await startInProcess({ ...fleet.environment, ...settings }));
  }

  it('is on the public port alone where management has its own', async () => {
    const gateway = await start({ ADMIN_PORT: '0' });
    const adminPort = /"adminPort":(\d+)/.exec(gateway.output())?.[1];
    const { secret } = await fleet.admin.makeKey('ports');
    const headers = { authorization: `Bearer ${secret}` };
    expect((await fetch(`${gateway.url}${SELF}`, { headers })).status).toBe(200);
    expect((await fetch(`${gateway.url}/tollgate/%73elf`, { headers })).status).toBe(404);
    expect(await (await fetch(`${gateway.url}/tollgate/other`, { headers })).text()).toBe('ok');
    const onAdminPort = await fetch(`http://127.0.0.1:${adminPort}${SELF}`, { headers });
    expect(onAdminPort.status).toBe(404);
  });

  it('is where SELF_SERVICE_PATH says, and nowhere when that is empty', async () => {
    const { secret } = await fleet.admin.makeKey('path');
    const headers = { authorization: `Bearer ${secret}` };
    const moved = await start({ SELF_SERVICE_PATH: '/account/me', ADMIN_PORT: '0' });
    expect(await (await fetch(`${moved.url}/account/me`, { headers })).json()).toMatchObject({
      name: 'path',
    });
    const usage = await fetch(`${moved.url}/account/me/usage?interval=day`, { headers });
    expect(await usage.json()).toMatchObject({ interval: 'day' });
    expect(await (await fetch(`${moved.url}${SELF}`, { headers })).text()).toBe('ok');
    const off = await start({ SELF_SERVICE_PATH: '', ADMIN_PORT: '0' });
    expect(await (await fetch(`${off.url}${SELF}`, { headers })).text()).toBe('ok');
  });

  it('is in the log and the metrics, as no proxied request', async () => {
    const gateway = ends(await startGateway({ ...fleet.environment, ACCESS_LOG: 'all' }));
    const { id, secret } = await fleet.admin.makeKey('logged');
    await fetch(`${gateway.url}${SELF}?customerId=a`, { headers: { authorization: `Bearer ${secret}` } });
    await fetch(`${gateway.url}${SELF}/usage`);
    await fetch(`${gateway.url}${SELF}/usage?top=0`, { headers: { authorization: `Bearer ${secret}` } });
    const lines = () =>
      gateway
        .output()
        .split('\n')
        .filter((line) => line.includes('"route":"self-service"'))
        .map((line) => JSON.parse(line));
    await until(() => lines().length === 3);
    expect(lines()).toMatchObject([
      { path: SELF, status: 200, operation: 'showOwnKey', outcome: 'served', actor: id },
      { status: 401, operation: 'showOwnUsage', outcome: 'unauthenticated', errorCode: 'missing_api_key' },
      { status: 400, outcome: 'invalid_request', errorCode: 'invalid_parameter', actor: id },
    ]);
    expect(gateway.output()).not.toContain(secret);
    const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text();
    expect(metrics).toContain(
      'tollgate_management_requests_total{outcome="served",operation="showOwnKey"} 1',
    );
    expect(metrics).not.toMatch(/tollgate_requests_total\{[^}]*\} [1-9]/);
  });
});
