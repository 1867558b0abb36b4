import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'undici';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { type GatewayProcess, gatewaySettings, startGateway } from '../support/gateway.ts';
import { createMigratedDatabase, type TestDatabase, testRedisUrl } from '../support/stores.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

/** More than an address may fail at once, by so much that what it gets back meanwhile does not matter. */
const GUESSES = 3000;
const IN_FLIGHT = 50;
/** More guesses at once than look-ups of the record store that run and wait where keys are read again. */
const ATTACKERS = 1200;
/** When they give up. */
const MOST_GUESSES = 60_000;
/** The message of Postgres's protocol that ends a query with parameters: every look-up has one. */
const SYNC = Buffer.from([0x53, 0, 0, 0, 4]);

let database: TestDatabase;
let relay: TcpRelay;
let backend: TestBackend;
let gateway: GatewayProcess;
let admin: Admin;
let clients: Pool;
/** Queries that reached Postgres. */
let queries = 0;

beforeAll(async () => {
  database = await createMigratedDatabase();
  relay = await TcpRelay.start(portOf(database.url), {
    onSent: (bytes) => {
      for (let at = bytes.indexOf(SYNC); at >= 0; at = bytes.indexOf(SYNC, at + 1)) queries += 1;
    },
  });
  backend = await startBackend();
  gateway = await startGateway(gatewaySettings(backend.url, relay.urlOf(database.url), testRedisUrl()));
  admin = new Admin(gateway.url);
  clients = new Pool(gateway.url, { connections: IN_FLIGHT });
});
afterAll(async () => {
  await clients?.destroy();
  await gateway?.stop();
  await backend?.stop();
  await relay?.stop();
  await database?.drop();
});

interface GuessResponse {
  readonly status: number;
  readonly code: unknown;
  readonly retryAfter: unknown;
}

/** Tries a new token each time; resolves with the responses, or rejects when one is missing. */
async function guess(
  path: string,
  newToken: () => string,
  guesses = GUESSES,
): Promise<readonly GuessResponse[]> {
  const responses: GuessResponse[] = [];
  let sent = 0;
  const guesser = async (): Promise<void> => {
    while (sent < guesses) {
      sent += 1;
      const headers = { authorization: `Bearer ${newToken()}` };
      const { statusCode, headers: fields, body } = await clients.request({ method: 'GET', path, headers });
      const { code } = (await body.json()) as { code: unknown };
      responses.push({ status: statusCode, code, retryAfter: fields['retry-after'] });
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, guesser));
  return responses;
}

function kindsOf(responses: readonly GuessResponse[]): ReadonlySet<string> {
  return new Set(responses.map((response) => JSON.stringify(response)));
}

const TOO_MANY = JSON.stringify({ status: 429, code: 'too_many_requests', retryAfter: '1' });

describe('an address that tries credentials', () => {
  it('with well-formed keys gets 429, costs Postgres little, and locks no client out', async () => {
    const cached = (await admin.makeKey('cached')).secret;
    expect(await statusOf(gateway.url, cached)).toBe(200);
    const unseen = (await admin.makeKey('unseen')).secret;
    const queriesBefore = queries;
    let isOver = false;
    const flood = guess('/', () => createSecret('tg', systemRandom)).finally(() => {
      isOver = true;
    });
    const others: number[] = [];
    while (!isOver) {
      others.push(await statusOf(gateway.url, cached));
      others.push((await admin.call('GET', '/rate-limit')).status);
    }
    // Not seen before, from an address that has nothing left: judged by what it is all the same.
    others.push(await statusOf(gateway.url, unseen));

    const responses = await flood;
    expect(kindsOf(responses)).toEqual(
      new Set([JSON.stringify({ status: 401, code: 'invalid_api_key' }), TOO_MANY]),
    );
    expect(responses.filter(({ status }) => status === 401).length).toBeGreaterThanOrEqual(1000);
    expect(new Set(others)).toEqual(new Set([200]));
    // What is guessed at the same time goes into one query; the others ask one each at most.
    expect(queries - queriesBefore - others.length).toBeLessThan(GUESSES / 2);
  });

  it('on over a thousand connections keeps no new key of any address from being served', async () => {
    const makeSecrets = () =>
      Promise.all(
        Array.from({ length: 8 }, async (_, index) => (await admin.makeKey(`new ${index}`)).secret),
      );
    const attackers = new Pool(gateway.url, { connections: ATTACKERS });
    // The address of the attackers, and another one.
    const honest = ['127.0.0.1', '127.0.0.2'].map(
      (localAddress) => new Pool(gateway.url, { connections: 10, connect: { localAddress } }),
    );
    const secrets = await Promise.all(honest.map(makeSecrets));
    let isOver = false;
    let guesses = 0;
    const attack = async (): Promise<void> => {
      for (; !isOver && guesses < MOST_GUESSES; guesses += 1) {
        const headers = { authorization: `Bearer ${createSecret('tg', systemRandom)}` };
        const { body } = await attackers.request({ method: 'GET', path: '/', headers });
        await body.dump();
      }
    };
    try {
      const attacks = Promise.all(Array.from({ length: ATTACKERS }, attack));
      // Where the test fails before it awaits them, their own failures must not hide why.
      attacks.catch(() => {});
      await until(() => guesses > ATTACKERS);
      // On a machine that stands still for seconds a look-up may end with 503: the client tries again, and is served during the attack.
      const statusOf = async (client: Pool, secret: string): Promise<number> => {
        const headers = { authorization: `Bearer ${secret}` };
        const { statusCode, body } = await client.request({ method: 'GET', path: '/', headers });
        await body.dump();
        return statusCode === 503 && guesses < MOST_GUESSES ? statusOf(client, secret) : statusCode;
      };
      const statuses = await Promise.all(
        honest.map(async (client, index) => {
          const received: number[] = [];
          for (const secret of secrets[index] ?? []) received.push(await statusOf(client, secret));
          return received;
        }),
      );
      const guessesMeanwhile = guesses;
      isOver = true;
      await attacks;
      expect(statuses).toEqual(secrets.map((each) => each.map(() => 200)));
      expect(guessesMeanwhile).toBeLessThan(MOST_GUESSES);
    } finally {
      isOver = true;
      await Promise.all([attackers, ...honest].map((pool) => pool.destroy()));
    }
  });

  it('without a right checksum costs Postgres a bounded number of queries', async () => {
    const queriesBefore = queries;
    await guess('/', () => `tg_${'x'.repeat(36)}`, 500);
    // What the replica asks by itself, such as for its readiness.
    expect(queries - queriesBefore).toBeLessThan(100);
  });

  it('with root tokens gets 429 too, and the right one still works', async () => {
    let number = 0;
    const responses = await guess('/rate-limit', () => `wrong-${number++}`, GUESSES / 2);
    expect(kindsOf(responses)).toContain(TOO_MANY);
    expect(kindsOf(responses).size).toBeLessThanOrEqual(2);
    expect((await admin.call('GET', '/rate-limit')).status).toBe(200);
  });
});
