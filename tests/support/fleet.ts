import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { Admin } from './admin.ts';
import { type GatewayProcess, gatewaySettings, startGateway } from './gateway.ts';
import { createMigratedDatabase, testRedisUrl } from './stores.ts';

/** Replicas over one Postgres database and one Redis, in front of one backend. */
export interface Fleet {
  readonly replicas: readonly GatewayProcess[];
  /** Of the first replica. */
  readonly admin: Admin;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** What each replica was started with. */
  readonly environment: Readonly<Record<string, string>>;
  /** Requests that reached the backend. */
  backendRequests(): number;
  stop(): Promise<void>;
}

/** Starts `count` replicas. The backend responds with 200 by default. */
export async function startFleet(
  count: number,
  settings: Readonly<Record<string, string>> = {},
  respond: RequestListener = (_req, res) => void res.end('ok'),
): Promise<Fleet> {
  const database = await createMigratedDatabase();
  const redisUrl = testRedisUrl();
  const redis = new Redis(redisUrl);
  await redis.flushdb();
  redis.disconnect();
  let backendRequests = 0;
  const backend = await listen(
    createServer((req, res) => {
      backendRequests += 1;
      req.resume();
      respond(req, res);
    }),
  );
  const environment = {
    ...gatewaySettings(`http://127.0.0.1:${backend.port}`, database.url, redisUrl),
    ...settings,
  };
  const replicas = await Promise.all(Array.from({ length: count }, () => startGateway(environment)));
  const [first] = replicas;
  if (first === undefined) throw new Error('a fleet needs a replica');
  return {
    replicas,
    admin: new Admin(first.url),
    databaseUrl: database.url,
    redisUrl,
    environment,
    backendRequests: () => backendRequests,
    stop: async () => {
      await Promise.all(replicas.map((replica) => replica.stop()));
      await backend.close();
      await database.drop();
    },
  };
}

async function listen(server: Server): Promise<{ readonly port: number; close(): Promise<void> }> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
