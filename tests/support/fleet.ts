import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Admin } from './admin.ts';
import { type GatewayProcess, gatewaySettings, type RunningGateway, startGateway } from './gateway.ts';
import { listenOnLoopback } from './listen-on-loopback.ts';
import { onRedis } from './on-redis.ts';
import { createMigratedDatabase, testRedisUrl } from './stores.ts';

/** Replicas over one Postgres database and one Redis, in front of one backend. */
export interface Fleet<Replica extends RunningGateway = RunningGateway> {
  readonly replicas: readonly Replica[];
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

/** Starts `count` replicas, each in a process of its own. The backend responds with 200 by default. */
export function startFleet(
  count: number,
  settings: Readonly<Record<string, string>> = {},
  respond: RequestListener = respondOk,
): Promise<Fleet<GatewayProcess>> {
  return openFleet(startGateway, { count, settings, respond });
}

/** The same in this process, for tests that need several replicas but neither signals nor crashes. */
export async function startInProcessFleet(
  count: number,
  settings: Readonly<Record<string, string>> = {},
  respond: RequestListener = respondOk,
): Promise<Fleet> {
  // Loaded only here, because it loads most of the gateway.
  const { startInProcess } = await import('./in-process-gateway.ts');
  return openFleet(startInProcess, { count, settings, respond });
}

function respondOk(_req: IncomingMessage, res: ServerResponse): void {
  res.end('ok');
}

interface FleetOptions {
  readonly count: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly respond: RequestListener;
}

async function openFleet<Replica extends RunningGateway>(
  start: (environment: Readonly<Record<string, string>>) => Promise<Replica>,
  { count, settings, respond }: FleetOptions,
): Promise<Fleet<Replica>> {
  const database = await createMigratedDatabase();
  const redisUrl = testRedisUrl();
  await onRedis(redisUrl, (redis) => redis.flushdb());
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
  const replicas = await Promise.all(Array.from({ length: count }, () => start(environment)));
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
  const port = await listenOnLoopback(server);
  return {
    port,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
