import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import supertest from 'supertest';
import { TollgateError } from '../../src/errors.ts';
import { BodyBudget } from '../../src/http/body-budget.ts';
import { FailedCredentials } from '../../src/http/credentials/failed-credentials.ts';
import { HandoverNotFound } from '../../src/keys/handovers/handover-errors.ts';
import type { ManagementServices } from '../../src/management/endpoint.ts';
import { createHandoverApp } from '../../src/management/handovers/handover-app.ts';
import { SELF_SERVICE_PATH } from '../../src/paths/path-matcher.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startManagement, type TestManagement } from './start-management.ts';

/** What is left of the 1000 guesses that an address has. */
const GUESSES = 3;

let clock: ManualClock;
let failedCredentials: FailedCredentials;
let management: TestManagement;
beforeEach(async () => {
  clock = new ManualClock(0);
  failedCredentials = new FailedCredentials({ clock, trustedProxies: new BlockList() });
  const req = { socket: { remoteAddress: '127.0.0.1' }, headers: {} } as unknown as IncomingMessage;
  const failure = new TollgateError('invalid_api_key', 'The consumer API key is not valid.');
  for (let guesses = GUESSES; guesses < 1000; guesses += 1) failedCredentials.errorFor(req, failure);
  management = await startManagement({ failedCredentials });
});
afterEach(() => management.stop());

describe('guessing', () => {
  it('of admin tokens ends with 429, while a valid one works from the same address', async () => {
    const { secret } = await management.createToken();
    const guess = () => management.sendAs(createSecret('tga', systemRandom), 'get', '/tollgate/whoami');
    for (let guesses = 0; guesses < GUESSES; guesses += 1) await guess().expect(401);
    const { body, headers } = await guess().expect(429);
    expect([body.code, headers['retry-after']]).toEqual(['too_many_requests', '1']);
    await management.sendAs(secret, 'get', '/tollgate/whoami').expect(200);
  });

  it('of keys by find ends with 429, and begins again when the clock has moved on', async () => {
    const guess = () => {
      const secret = createSecret('tg', systemRandom);
      return management.send('post', '/api-keys/find', { secret });
    };
    for (let guesses = 0; guesses < GUESSES; guesses += 1) await guess().expect(404);
    expect((await guess().expect(429)).body.code).toBe('too_many_requests');
    clock.advance(60_000);
    await guess().expect(404);
  });

  it('of keys is no request that fails for another reason', async () => {
    const find = (secret: string) => management.send('post', '/api-keys/find', { secret });
    for (let requests = 0; requests <= GUESSES; requests += 1) await find('').expect(400);
    await find(createSecret('tg', systemRandom)).expect(404);
  });

  it('of hand-over links ends with 429', async () => {
    const services = {
      handovers: { show: () => Promise.reject(new HandoverNotFound()) },
      ...{ clock, log: pino({ level: 'silent' }) },
    };
    const { serve } = createHandoverApp(SELF_SERVICE_PATH, {
      services: services as unknown as ManagementServices,
      ...{
        failedCredentials,
        bodyBudget: new BodyBudget(),
        trustedProxies: new BlockList(),
        pages: '/nowhere',
      },
      servicesFor: () => services as unknown as ManagementServices,
      idempotency: {} as never,
    });
    const app = createServer((req, res) => {
      Reflect.set(res, 'locals', { requestId: 'one' });
      serve(req, res);
    });
    const guess = () => supertest(app).post(`${SELF_SERVICE_PATH}/handover/open`).send({ token: 'guess' });
    for (let guesses = 0; guesses < GUESSES; guesses += 1) await guess().expect(404);
    expect((await guess().expect(429)).body.code).toBe('too_many_requests');
  });
});

describe('a token that is limited to tags, with secrets that are taken', () => {
  const FIND_ENTRIES = '/tollgate/audit-log?action=key.find';
  const IMPORT = '/api-keys/import';
  const hashOf = (secret: string) => ({
    algorithm: 'sha256',
    value: createHash('sha256').update(secret).digest('hex'),
  });

  async function limitedToken() {
    const scopes = ['keys:read', 'keys:write', 'config:write'];
    const token = await management.createToken({ scopes, onlyTags: ['eu'] });
    const post = (path: string, body: object) => management.sendAs(token.secret, 'post', path, body);
    return { ...token, post };
  }

  async function entries() {
    return (await management.send('get', FIND_ENTRIES).expect(200)).body.entries;
  }

  it.each([
    {
      request: 'create',
      path: '/consumer-api-key/create',
      bodyOf: (secret: string) => ({ name: 'guess', secret }),
      operation: 'createConsumerKey',
    },
    {
      request: 'import of texts',
      path: IMPORT,
      bodyOf: (secret: string) => ({ keys: [{ name: 'guess', secret }] }),
      operation: 'importConsumerKeys',
    },
    {
      request: 'import of hashes',
      path: IMPORT,
      bodyOf: (secret: string) => ({ keys: [{ name: 'guess', secretHash: hashOf(secret) }] }),
      operation: 'importConsumerKeys',
    },
    {
      request: 'configuration',
      path: '/tollgate/config/apply',
      bodyOf: (secret: string) => ({
        owner: 'eu',
        config: { keys: [{ externalId: 'guess', name: 'guess', tags: ['eu'], secretHash: hashOf(secret) }] },
      }),
      operation: 'applyConfiguration',
    },
  ])('by other keys has an entry for each such $request', async ({ path, bodyOf, operation }) => {
    const { adminTokenId, post } = await limitedToken();
    const { id, secret } = await management.createKey('of others');
    await management.send('post', `/consumer-api-key/${id}/rotate`, { graceSeconds: 60 }).expect(200);
    // In a transaction, which is rolled back.
    await post(path, bodyOf(secret)).set('Idempotency-Key', operation).expect(409);
    const found = await entries();
    expect(found).toMatchObject([
      {
        actor: { adminTokenId },
        target: { type: 'operation', id: operation, name: null },
        outcome: 'secret_taken',
      },
    ]);
    expect(JSON.stringify(found)).not.toContain(secret);
  });

  it('by other keys gets 429 at last, also for an own key and an import that skips, and makes none', async () => {
    const { post } = await limitedToken();
    const own = await post('/consumer-api-key/create', { name: 'own' }).expect(201);
    const rotate = `/consumer-api-key/${own.body.id}/rotate`;
    const others = [await management.createKey(), await management.createKey(), await management.createKey()];
    const keys = others.map(({ secret }) => ({ name: 'guess', secret }));
    await post(IMPORT, { keys: keys.slice(0, GUESSES - 1), onConflict: 'skip' }).expect(200);
    await post(rotate, { graceSeconds: 0, secret: others[0]?.secret }).expect(409);
    await post(rotate, { graceSeconds: 0, secret: others[0]?.secret }).expect(429);
    const fresh = { name: 'fresh', secret: 'a-secret-that-no-key-has-had' };
    const { body } = await post(IMPORT, { keys: [fresh, ...keys], onConflict: 'skip' }).expect(429);
    expect(body.code).toBe('too_many_requests');
    await management.send('post', IMPORT, { keys: [fresh] }).expect(200);
    expect(await entries()).toHaveLength(4);
  });

  it('by keys that it sees can send an import again and again, without an entry', async () => {
    const { post } = await limitedToken();
    const keys = [{ name: 'own', secret: 'a-secret-of-a-key-of-the-token' }];
    for (let times = 0; times < GUESSES + 2; times += 1)
      await post(IMPORT, { keys, onConflict: 'skip' }).expect(200);
    expect(await entries()).toEqual([]);
  });
});
