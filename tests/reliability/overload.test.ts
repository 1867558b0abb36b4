import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'undici';
import { Admin } from '../support/admin.ts';
import { type GatewayProcess, gatewaySettings, startGateway } from '../support/gateway.ts';
import { createMigratedDatabase, type TestDatabase, testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { metric } from './support/probe.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

const CONNECTIONS = 20;
/** Four for each connection. */
const WAITING = 80;
const REQUESTS = 1000;

let database: TestDatabase;
let backend: TestBackend;
let gateway: GatewayProcess;
let secret: string;
let clients: Pool;

beforeAll(async () => {
  database = await createMigratedDatabase();
  backend = await startBackend();
  gateway = await startGateway({
    ...gatewaySettings(backend.url, database.url, testRedisUrl()),
    BACKEND_CONNECTIONS: String(CONNECTIONS),
    // Longer than any request here waits.
    BACKEND_TIMEOUT_MS: '600000',
    BACKEND_CONNECTIONS_PER_KEY: String(CONNECTIONS),
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

interface Response {
  readonly status: number;
  readonly retryAfter: unknown;
  readonly code: unknown;
}

async function ask(path = '/'): Promise<Response> {
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

/** Sends many requests to a backend that responds with none, and lets it respond once the gateway has rejected all it has no room for. */
async function overload(): Promise<readonly Response[]> {
  backend.hold();
  let rejected = 0;
  const responses = Array.from({ length: REQUESTS }, () =>
    ask().then((response) => {
      if (response.status === 503) rejected += 1;
      return response;
    }),
  );
  // Before any allowed one has its response: they are rejected at once, without a wait for a timeout.
  await until(() => rejected === REQUESTS - CONNECTIONS - WAITING);
  await until(() => backend.held() === CONNECTIONS);
  expect(await metric(gateway.opsUrl, 'tollgate_backend_requests_queued')).toBe(WAITING);
  backend.release();
  return Promise.all(responses);
}

describe('more requests than the backend takes', () => {
  it('get 503 with Retry-After at once, and those that were allowed get a response', async () => {
    const responses = await overload();
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(CONNECTIONS + WAITING);
    const rejections = responses.filter(({ status }) => status !== 200);
    expect(new Set(rejections.map((response) => JSON.stringify(response)))).toEqual(
      new Set([JSON.stringify({ status: 503, retryAfter: '1', code: 'overloaded' })]),
    );
  });

  it('make allowed requests wait for as many responses as there are places, in order', async () => {
    const steps = 2 * (CONNECTIONS + WAITING);
    const before = backend.received();
    const responses: Promise<Response>[] = [];
    /** How many responses the backend had given when a request was sent, by its target. */
    const sentAt = new Map<string, number>();
    let [given, rejected] = [0, 0];
    const send = (count: number): void => {
      for (let time = 0; time < count; time += 1) {
        const target = `/${responses.length}`;
        sentAt.set(target, given);
        const response = ask(target);
        void response.then(({ status }) => (rejected += status === 503 ? 1 : 0));
        responses.push(response);
      }
    };
    backend.hold();
    send(REQUESTS);
    await until(() => rejected === REQUESTS - CONNECTIONS - WAITING);
    while (given < steps) {
      backend.respondToOldest();
      given += 1;
      await until(() => backend.received() - before === CONNECTIONS + given);
      // Ten for the one place that is free now. The nine are rejected although the backend responds with nothing meanwhile.
      const rejections = rejected + 9;
      send(10);
      await until(() => rejected === rejections);
    }
    const begun = backend.targets().slice(before);
    const waited = begun.map(
      (target, index) => Math.max(0, index + 1 - CONNECTIONS) - (sentAt.get(target) ?? Number.NaN),
    );
    expect(Math.max(...waited)).toBe(WAITING);
    const arrivals = begun.map((target) => sentAt.get(target) ?? Number.NaN);
    expect(arrivals).toEqual(arrivals.toSorted((one, other) => one - other));

    backend.release();
    const allowed = (await Promise.all(responses)).filter(({ status }) => status === 200);
    expect(allowed).toHaveLength(CONNECTIONS + WAITING + steps);
    expect(backend.received() - before).toBe(allowed.length);
  });

  it('leave no request at the backend and none waiting', async () => {
    for (let round = 0; round < 2; round += 1) await overload();
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
