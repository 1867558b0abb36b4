import { connectPostgres, serverOf } from '../../src/storage/postgres/postgres-connection.ts';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { startFrontGateway } from '../authorize/support/documented-gateways.ts';
import { readyz } from '../reliability/support/probe.ts';
import { Admin } from '../support/admin.ts';
import { freePort } from '../support/free-port.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN } from '../support/gateway.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { startTogether } from '../support/stops.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { type ChaosBackend, startChaosBackend } from './chaos-backend.ts';
import { ChaosReplica } from './chaos-replica.ts';
import { ChaosReceiver } from './events/chaos-receiver.ts';
import { Intervals } from './intervals.ts';

/** A key under load, and how many requests it may make in each window. */
export interface ChaosKey {
  readonly id: string;
  readonly secret: string;
  readonly limit: number;
}

/** All that takes part in a run. */
export interface World {
  readonly postgres: PostgresServer;
  /** Between the replicas and Postgres. */
  readonly postgresRelay: TcpRelay;
  readonly backend: ChaosBackend;
  readonly replicas: readonly ChaosReplica[];
  /** Hears all events. */
  readonly receiver: ChaosReceiver;
  /** Postgres, not by way of the relay. */
  readonly db: RecordsDatabase;
  /** When each of them was disturbed. */
  readonly troubles: { readonly redis: Intervals; readonly postgres: Intervals; readonly backend: Intervals };
  stop(): Promise<void>;
}

/** Some windows fill up, one never does. */
const LIMITS = [50, 300, 1_000_000_000];
const WINDOW = '7s';
/** Short, so that a backend that hangs is noticed within a fault. Milliseconds. */
export const BACKEND_TIMEOUT_MS = 3000;

/**
 * Starts Postgres, a backend and a replica with each of the numbers of workers and these settings of Redis, all of this run's own. They must be
 * stopped by their user.
 */
export async function startWorld(
  workers: readonly number[],
  redisSettings: Readonly<Record<string, string>>,
): Promise<World> {
  return startTogether(async (stops) => {
    const postgres = await startPostgresServer();
    stops.push(() => postgres.stop());
    const postgresRelay = await TcpRelay.start(portOf(postgres.url));
    stops.push(() => postgresRelay.stop());
    const backend = await startChaosBackend();
    stops.push(() => backend.stop());
    const receiver = await ChaosReceiver.start();
    stops.push(() => receiver.stop());
    const db = connectPostgres({ server: serverOf(postgres.url), maxConnections: 2, onIdleError: () => {} });
    stops.push(() => db.destroy());
    const environment = {
      BACKEND_URL: backend.url,
      BACKEND_TIMEOUT_MS: String(BACKEND_TIMEOUT_MS),
      DATABASE_URL: postgresRelay.urlOf(postgres.url),
      ...redisSettings,
      // A machine that has other things to do may be late; that is no fault of Redis.
      REDIS_TIMEOUT_MS: '2000',
      ROOT_TOKEN,
      ENCRYPTION_KEY,
      TRUSTED_PROXIES: '127.0.0.1',
      ...{ WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' },
    };
    const replicas: ChaosReplica[] = [];
    for (const own of workers) {
      const ports = { port: await freePort(), opsPort: await freePort(), authorizePort: await freePort() };
      const nginx = await startFrontGateway('nginx', {
        ...{ tollgatePort: ports.authorizePort, backendPort: Number(new URL(backend.url).port) },
      });
      stops.push(() => nginx.stop());
      const frontUrl = `http://127.0.0.1:${nginx.port}`;
      const replica = new ChaosReplica(environment, { ...ports, workers: own, frontUrl });
      await replica.start();
      stops.push(() => replica.kill());
      replicas.push(replica);
    }
    for (const replica of replicas) await isReady(replica);
    await makeWebhook(replicas, receiver);
    return {
      postgres,
      postgresRelay,
      backend,
      replicas,
      receiver,
      db,
      troubles: { redis: new Intervals(), postgres: new Intervals(), backend: new Intervals() },
    };
  });
}

async function makeWebhook([first]: readonly ChaosReplica[], { url }: ChaosReceiver): Promise<void> {
  const webhook = { url, events: ['tollgate.*'], batch: true };
  const { status } = await new Admin(first?.url ?? '').call('POST', '/tollgate/webhook/create', webhook);
  if (status !== 201) throw new Error(`the webhook was not made: ${status}`);
}

/** Resolves once the replica is ready, with all of its workers; rejects after half a minute, with what it wrote. */
export async function isReady(replica: ChaosReplica): Promise<void> {
  const { opsUrl, workers } = replica;
  const isComplete = async (): Promise<boolean> => {
    const { status, components } = await readyz(opsUrl);
    return status === 200 && (workers === 1 || components.workers === 'ok');
  };
  await until(() => isComplete().catch(() => false), { timeoutMs: 30_000 }).catch((cause: unknown) => {
    throw new Error(`a replica does not become ready:\n${replica.lastWords()}`, { cause });
  });
}

/** Makes new keys, one for each limit. */
export async function makeKeys({ replicas }: World): Promise<readonly ChaosKey[]> {
  const admin = new Admin(replicas[0]?.url ?? '');
  const keys: ChaosKey[] = [];
  for (const limit of LIMITS) {
    const planId = `chaos-${limit}`;
    if ((await admin.call('GET', `/rate-limit/${planId}`)).status === 404)
      await admin.makePlan(planId, limit, WINDOW);
    keys.push({ ...(await admin.makeKey(planId, planId)), limit });
  }
  return keys;
}
