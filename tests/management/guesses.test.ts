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
