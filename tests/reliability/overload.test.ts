import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'undici';
import { Admin } from '../support/admin.ts';
import { ENCRYPTION_KEY, type GatewayProcess, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { createTestDatabase, type TestDatabase, testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { metric } from './support/probe.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

const CONNECTIONS = 20;
/** Four for each connection. */
const WAITING = 80;
const REQUESTS = 1000;
const MEGABYTE = 2 ** 20;

let database: TestDatabase;
let backend: TestBackend;
let gateway: GatewayProcess;
let secret: string;
let clients: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  backend = await startBackend();
  gateway = await startGateway({
    BACKEND_URL: backend.url,
    BACKEND_CONNECTIONS: String(CONNECTIONS),
    DATABASE_URL: database.url,
    REDIS_URL: testRedisUrl(),
    REDIS_TIMEOUT_MS: '5000',
    ROOT_TOKEN,
    ENCRYPTION_KEY,
  });
  const admin = new Admin(gateway.url);
  await admin.makePlan('roomy', 1_000_000_000, 'day');
  secret = (await admin.makeKey('overload', 'roomy')).secret;
  clients = new Pool(gateway.url, { connections: 300, pipelining: 1 });
});
afterAll(async () => {
  await clients?.destroy();
  await gateway?.stop();
  await backend?.stop();
  await database?.drop();
});

interface Answer {
  readonly status: number;
  readonly retryAfter: unknown;
  readonly code: unknown;
}

async function ask(path = '/'): Promise<Answer> {
  const { statusCode, headers, body } = await clients.request({
    method: 'GET',
    path,
    headers: { authorization: `Bearer ${secret}` },
  });
  const text = await body.text();
  return {
    status: statusCode,
    retryAfter: headers['retry-after'],
    code: statusCode === 200 ? undefined : JSON.parse(text).code,
  };
}

/** Sends many requests to a backend that answers none, and lets it answer once the gateway has refused all it has no room for. */
async function overload(): Promise<readonly Answer[]> {
  backend.hold();
  let refused = 0;
  const answers = Array.from({ length: REQUESTS }, () =>
    ask().then((answer) => {
      if (answer.status === 503) refused += 1;
      return answer;
    }),
  );
  // Before any admitted one is answered: they are refused at once, without a wait for a timeout.
  await until(() => refused === REQUESTS - CONNECTIONS - WAITING, { timeoutMs: 20_000 });
  expect(backend.held()).toBe(CONNECTIONS);
  expect(await metric(gateway.opsUrl, 'tollgate_backend_requests_queued')).toBe(WAITING);
  backend.release();
  return Promise.all(answers);
}

describe('more requests than the backend takes', () => {
  it('are refused at once with 503 and Retry-After, and those that were admitted are answered', async () => {
    const answers = await overload();
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(CONNECTIONS + WAITING);
    const refusals = answers.filter(({ status }) => status !== 200);
    expect(new Set(refusals.map((answer) => JSON.stringify(answer)))).toEqual(
      new Set([JSON.stringify({ status: 503, retryAfter: '1', code: 'overloaded' })]),
    );
  });

  it('make those that were admitted wait for as many answers of the backend as there are places, the oldest first', async () => {
    const steps = 2 * (CONNECTIONS + WAITING);
    const before = backend.received();
    const answers: Promise<Answer>[] = [];
    /** How many answers the backend had given when a request was sent, by its target. */
    const sentAt = new Map<string, number>();
    let [given, refused] = [0, 0];
    const send = (count: number): void => {
      for (let time = 0; time < count; time += 1) {
        const target = `/${answers.length}`;
        sentAt.set(target, given);
        const answer = ask(target);
        void answer.then(({ status }) => (refused += status === 503 ? 1 : 0));
        answers.push(answer);
      }
    };
    backend.hold();
    send(REQUESTS);
    await until(() => refused === REQUESTS - CONNECTIONS - WAITING, { timeoutMs: 20_000 });
    while (given < steps) {
      backend.answerOldest();
      given += 1;
      await until(() => backend.received() - before === CONNECTIONS + given);
      // Ten for the one place that is free now. The nine are refused although the backend answers nothing meanwhile.
      const refusals = refused + 9;
      send(10);
      await until(() => refused === refusals, { timeoutMs: 20_000 });
    }
    const begun = backend.targets().slice(before);
    const waited = begun.map(
      (target, index) => Math.max(0, index + 1 - CONNECTIONS) - (sentAt.get(target) ?? Number.NaN),
    );
    expect(Math.max(...waited)).toBe(WAITING);
    const arrivals = begun.map((target) => sentAt.get(target) ?? Number.NaN);
    expect(arrivals).toEqual(arrivals.toSorted((one, other) => one - other));

    backend.release();
    const admitted = (await Promise.all(answers)).filter(({ status }) => status === 200);
    expect(admitted).toHaveLength(CONNECTIONS + WAITING + steps);
    expect(backend.received() - before).toBe(admitted.length);
  });

  it('cost no memory that stays, and no connection', async () => {
    const before = await metric(gateway.opsUrl, 'process_resident_memory_bytes');
    for (let round = 0; round < 4; round += 1) await overload();
    const after = await metric(gateway.opsUrl, 'process_resident_memory_bytes');
    expect(after - before).toBeLessThan(100 * MEGABYTE);
    expect(await metric(gateway.opsUrl, 'tollgate_backend_requests_in_use')).toBe(0);
    expect(await metric(gateway.opsUrl, 'tollgate_backend_requests_queued')).toBe(0);
    expect((await ask()).status).toBe(200);
  });

  it('are measured: the delay of the event loop is exported', async () => {
    for (const statistic of ['p50', 'p99', 'max']) {
      const name = 'tollgate_event_loop_delay_seconds';
      expect(await metric(gateway.opsUrl, name, `statistic="${statistic}"`)).toBeGreaterThanOrEqual(0);
    }
  });
});
