import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { StoreUnavailable } from '../../src/errors.ts';
import { ENDPOINTS } from '../../src/management/endpoints.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { freePort } from '../support/free-port.ts';
import { openTestRecords } from '../support/records.ts';
import {
  type Replacements,
  startManagement,
  type TestManagement,
  UNUSED,
  usageThat,
} from './start-management.ts';

const running: TestManagement[] = [];
afterAll(async () => {
  for (const each of running) await each.stop();
});

async function start(replacements: Replacements = {}): Promise<TestManagement> {
  const management = await startManagement(replacements);
  running.push(management);
  return management;
}

describe('while Postgres is down', () => {
  let management: TestManagement;
  beforeAll(async () => {
    const records = openTestRecords(`postgres://nobody@127.0.0.1:${await freePort()}/none`);
    management = await start({ records });
  });

  const values: Readonly<Record<string, unknown>> = {
    name: 'n',
    consumerApiKeyId: 'key_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    rateLimitId: 'gold',
    description: '',
    limit: 1,
    period: 'hour',
    requests: 1,
    ttlSeconds: 60,
    graceSeconds: 0,
    keep: 'new',
    secret: 'a-secret-that-comes-from-outside',
    keys: [{ name: 'n', secret: 'a-secret-that-comes-from-outside' }],
    adminTokenId: 'adm_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    webhookId: 'whk_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    jobId: 'job_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    action: 'set-plan',
    ids: ['key_01ARZ3NDEKTSV4RRFFQ69G5FAV'],
    url: 'https://8.8.8.8/',
    events: ['tollgate.key.*'],
    scopes: ['keys:read'],
    owner: 'deployment',
    config: {},
  };
  /** What responds from memory, or says itself what does not respond, or needs the proxied side. */
  const storeless = ['whoami', 'showSystem', 'openApiDocument', 'tryConsumerKey'];
  const stored = ENDPOINTS.filter(({ operationId }) => !storeless.includes(operationId));
  const routes = stored.map(({ method, path, body }) => {
    const [, parameter = ''] = /\{(\w+)\}/.exec(path) ?? [];
    const id = values[parameter];
    const fields = Object.keys(body?.properties ?? {}).filter((field) => field in values);
    const sent = body && Object.fromEntries(fields.map((field) => [field, values[field]]));
    return [method, path.replace(/\{\w+\}/, String(id)), sent] as const;
  });

  it.each(routes)('%s %s responds 503 with Retry-After', async (method, path, sent) => {
    const { body: response, headers } = await management.send(method, path, sent).expect(503);
    expect(response).toEqual({
      error: 'A store that this response needs is not available. Try again shortly.',
      code: 'store_unavailable',
    });
    expect(headers['retry-after']).toBe('1');
  });

  it('lets the root token in, and responds 503 to what may be an admin token', async () => {
    await management.send('get', '/tollgate/whoami').expect(200);
    const { body } = await management
      .sendAs(createSecret('tga', systemRandom), 'get', '/tollgate/whoami')
      .expect(503);
    expect(body.code).toBe('store_unavailable');
  });

  it('still tells wrong credentials from right ones', async () => {
    await management.bare('get', '/rate-limit').set('Authorization', 'Bearer wrong').expect(401);
  });

  it('logs store, cause and number of requests in one short line a minute', async () => {
    const warnings = () =>
      management.lines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40);
    for (const [minute, requests] of [1, 3, 1].entries()) {
      if (minute > 0) management.clock.advance(60_000);
      for (let index = 0; index < requests; index += 1)
        await management.send('get', '/rate-limit').expect(503);
    }
    const facts = { level: 40, event: 'store_unavailable', store: 'postgres' };
    const reason = expect.stringContaining('ECONNREFUSED');
    // Of the minute before: two that had no line, and its own.
    expect(warnings().slice(-2)).toMatchObject([
      { ...facts, reason },
      { ...facts, reason, responses: 3 },
    ]);
    for (const line of warnings()) expect(line).not.toHaveProperty('err');
  });
});

describe('while DEFAULT_PLAN_ID names no plan', () => {
  let management: TestManagement;
  beforeAll(async () => {
    management = await start({ defaultPlanId: 'none-yet' });
  });

  it('a key that is bound to no plan can be changed, bound and deleted', async () => {
    const { id } = await management.createKey();
    const path = `/consumer-api-key/${id}`;
    await management.send('patch', path, { name: 'renamed' }).expect(200);
    const { rateLimitId } = await management.createPlan();
    const binding = { consumerApiKeyId: id, rateLimitId };
    await management.send('post', '/api-keys/apply-rate-limit', binding).expect(200);
    await management.send('get', path).expect(200);
    const other = await management.createKey();
    await management.send('delete', `/consumer-api-key/${other.id}`).expect(200);
  });

  it('its detail is a 503, the log says why, and a plan of that name mends it', async () => {
    const { id } = await management.createKey();
    const { body } = await management.send('get', `/consumer-api-key/${id}`).expect(503);
    expect(body.code).toBe('store_unavailable');
    expect(management.lines.at(-1)).toContain('The default plan \\"none-yet\\" does not exist');
    await management.createPlan({ rateLimitId: 'none-yet' });
    await management.send('get', `/consumer-api-key/${id}`).expect(200);
  });
});

describe('while the tables are missing', () => {
  it('responds 503, not 500', async () => {
    const management = await start();
    const { id } = await management.createKey();
    await sql`drop table consumer_keys cascade`.execute(management.records.db);
    for (const path of ['/consumer-api-key', `/consumer-api-key/${id}`]) {
      const { body } = await management.send('get', path).expect(503);
      expect(body.code).toBe('store_unavailable');
    }
  });
});

describe('a failure', () => {
  it('of the usage store is a 503 of the detail response', async () => {
    const usage = usageThat(() => Promise.reject(new StoreUnavailable('redis', new Error('down'))));
    const management = await start({ usage });
    const { id } = await management.createKey();
    await management.send('get', `/consumer-api-key/${id}`).expect(503);
  });

  it('that is unexpected is a 500 without detail; the log has only the error', async () => {
    const usage = usageThat(() => Promise.reject(new Error('the private reason')));
    const management = await start({ usage });
    const { id } = await management.createKey();
    const { body } = await management
      .send('get', `/consumer-api-key/${id}`)
      .set('X-Note', 'header-of-the-client')
      .expect(500);
    expect(body).toEqual({
      error: 'The gateway failed to respond. The log has the reason.',
      code: 'internal_error',
    });
    const line = management.lines.at(-1) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({
      level: 50,
      event: 'internal_error',
      err: { message: 'the private reason' },
    });
    expect(line).not.toContain('header-of-the-client');
  });

  it('of the client leaves no line', async () => {
    const management = await start();
    await management.send('post', '/consumer-api-key/create', {}).expect(400);
    await management.send('get', '/rate-limit/%zz').expect(400);
    await management.bare('get', '/rate-limit').expect(401);
    await management.send('get', '/rate-limit/nope').expect(404);
    expect(management.lines).toEqual([]);
  });
});

describe('the log', () => {
  it('has one line for each change, with ids and without names or secrets', async () => {
    const management = await start({ usage: usageThat(async () => UNUSED) });
    const { id } = await management.createKey('a private name');
    const { rateLimitId } = await management.createPlan();
    await management.send('get', `/consumer-api-key/${id}`).expect(200);
    await management.send('get', '/consumer-api-key').expect(200);
    await management.send('patch', `/consumer-api-key/${id}`, { enabled: false }).expect(200);
    await management.send('patch', `/rate-limit/${rateLimitId}`, { limit: 2 }).expect(200);
    await management
      .send('post', '/api-keys/apply-rate-limit', { consumerApiKeyId: id, rateLimitId })
      .expect(200);
    await management.send('delete', `/consumer-api-key/${id}`).expect(200);
    await management.send('delete', `/rate-limit/${rateLimitId}`).expect(200);
    const events = management.lines.map((line) => {
      const { event, keyId, planId } = JSON.parse(line);
      return [event, keyId, planId];
    });
    expect(events).toEqual([
      ['key_created', id, undefined],
      ['plan_created', undefined, rateLimitId],
      ['key_updated', id, undefined],
      ['plan_updated', undefined, rateLimitId],
      ['plan_applied', id, rateLimitId],
      ['key_deleted', id, undefined],
      ['plan_deleted', undefined, rateLimitId],
    ]);
    expect(management.lines.join('')).not.toContain('business');
  });
});
