import { readdir } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Pool } from 'undici';
import { Admin } from '../support/admin.ts';
import { type GatewayProcess, gatewaySettings, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { createMigratedDatabase, queryDatabase, type TestDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { metric, readyz } from './support/probe.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

const OPEN_FILES = 1000;
const BACKEND_CONNECTIONS = 64;
/** Clients that do no harm, and were there before the others. */
const HONEST = 8;

let database: TestDatabase;
let backend: TestBackend;
let gateway: GatewayProcess;
let secret: string;
let redisServer: RedisServer;
let redis: Redis;
let honest: Pool;
const flood = new Set<Socket>();

beforeAll(async () => {
  database = await createMigratedDatabase();
  backend = await startBackend();
  redisServer = await startRedisServer();
  redis = new Redis(redisServer.url);
  gateway = await startGateway(
    {
      ...gatewaySettings(backend.url, database.url, redisServer.url),
      BACKEND_CONNECTIONS: String(BACKEND_CONNECTIONS),
      BACKEND_CONNECTIONS_PER_KEY: String(BACKEND_CONNECTIONS),
    },
    { openFiles: OPEN_FILES },
  );
  ({ secret } = await new Admin(gateway.url).makeKey('honest'));
  honest = new Pool(gateway.url, { connections: HONEST, pipelining: 1 });
  await Promise.all(Array.from({ length: HONEST }, () => proxied()));
});
afterAll(async () => {
  await honest?.destroy();
  endFlood();
  await gateway?.stop();
  await backend?.stop();
  redis?.disconnect();
  await redisServer?.stop();
  await database?.drop();
});

/** A request on a connection that was open before. Resolves with its status and whether Redis decided. */
async function proxied(): Promise<readonly [number, boolean]> {
  const { statusCode, headers, body } = await honest.request({
    method: 'GET',
    path: '/',
    headers: { authorization: `Bearer ${secret}` },
  });
  await body.dump();
  return [statusCode, headers['x-ratelimit-remaining'] !== undefined];
}

async function managed(): Promise<number> {
  const { statusCode, body } = await honest.request({
    method: 'GET',
    path: '/consumer-api-key?limit=1',
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  await body.dump();
  return statusCode;
}

/** Opens connections that have half a head, and one again for each that is closed. */
function startFlood(connections: number): void {
  const open = (): void => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    flood.add(socket);
    socket.on('error', () => {});
    socket.once('connect', () => socket.write('GET / HTTP/1.1\r\nHo'));
    socket.once('close', () => {
      if (flood.delete(socket)) setTimeout(open, 50);
    });
  };
  for (let i = 0; i < connections; i += 1) open();
}

function endFlood(): void {
  for (const socket of flood) {
    flood.delete(socket);
    socket.destroy();
  }
}

async function openFiles(): Promise<number> {
  return (await readdir(`/proc/${gateway.pid}/fd`)).length;
}

describe('clients that hold all the connections they can get', () => {
  beforeAll(async () => {
    startFlood(OPEN_FILES);
    await until(async () => (await metric(gateway.opsUrl, 'tollgate_client_connections_rejected_total')) > 0);
  });

  it('leave room for the ops port, on which metrics say so', async () => {
    expect((await readyz(gateway.opsUrl)).status).toBe(200);
    const [open, most] = await Promise.all(
      ['', '_limit'].map((end) => metric(gateway.opsUrl, `tollgate_client_connections${end}`)),
    );
    expect(open).toBe(most);
    expect(await openFiles()).toBeLessThan(OPEN_FILES);
  });

  it('leave room for new connections to the backend', async () => {
    backend.hold();
    const requests = Array.from({ length: HONEST }, () => proxied());
    await until(() => backend.held() === HONEST);
    backend.release();
    expect((await Promise.all(requests)).map(([status]) => status)).toEqual(Array(HONEST).fill(200));
  });

  it('leave room for new connections to Redis', async () => {
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until(async () => {
      const [status, isDecidedByRedis] = await proxied();
      return status === 200 && isDecidedByRedis;
    });
  });

  it('leave room for new connections to Postgres', async () => {
    await queryDatabase(
      database.url,
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    await until(async () => (await managed()) === 200);
  });

  it('are named in the log once, and once they are gone others may connect', async () => {
    endFlood();
    const changes = () =>
      gateway.output().match(/clients (?:have all the connections|may connect again)/g) ?? [];
    await until(() => changes().at(-1) === 'clients may connect again');
    // Where the test takes so long that the gateway closes connections without a whole head, the flood begins anew.
    const floods = Array(changes().length / 2).fill([
      'clients have all the connections',
      'clients may connect again',
    ]);
    expect(changes()).toEqual(floods.flat());
    expect((await fetch(gateway.url)).status).toBe(401);
  });
});
