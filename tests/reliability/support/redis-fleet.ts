import { Admin } from '../../support/admin.ts';
import {
  ENCRYPTION_KEY,
  type GatewayProcess,
  ROOT_TOKEN,
  type RunningGateway,
  startGateway,
} from '../../support/gateway.ts';
import { createMigratedDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';
import { metric } from './probe.ts';
import { startBackend } from './test-backend.ts';

/** Replicas in front of one backend, over one Postgres database of their own. */
export interface RedisFleet<Replica extends RunningGateway = RunningGateway> {
  readonly replicas: readonly Replica[];
  readonly admin: Admin;
  stop(): Promise<void>;
}

type Settings = readonly Readonly<Record<string, string>>[];

/** Starts a replica with each of the settings, which must say where Redis is. Resolves when each knows of all, if they share one. */
export function startRedisFleet(settings: Settings, areTogether = true): Promise<RedisFleet<GatewayProcess>> {
  return openRedisFleet(startGateway, settings, { areTogether, end: (replica) => replica.kill() });
}

/** The same in this process. Its end waits for Redis. */
export async function startInProcessRedisFleet(settings: Settings): Promise<RedisFleet> {
  // Loaded only here, because it loads most of the gateway.
  const { startInProcess } = await import('../../support/in-process-gateway.ts');
  return openRedisFleet(startInProcess, settings, { areTogether: true, end: (replica) => replica.stop() });
}

async function openRedisFleet<Replica extends RunningGateway>(
  start: (environment: Settings[number]) => Promise<Replica>,
  settings: Settings,
  options: { readonly areTogether: boolean; readonly end: (replica: Replica) => Promise<unknown> },
): Promise<RedisFleet<Replica>> {
  const database = await createMigratedDatabase();
  const backend = await startBackend();
  const environment = { BACKEND_URL: backend.url, DATABASE_URL: database.url, ROOT_TOKEN, ENCRYPTION_KEY };
  const started = await Promise.allSettled(settings.map((own) => start({ ...environment, ...own })));
  const replicas = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const stop = async () => {
    const ended = await Promise.allSettled(replicas.map(options.end));
    await backend.stop();
    await database.drop();
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  };
  try {
    for (const one of started) if (one.status === 'rejected') throw one.reason;
    await until(async () => {
      const seen = await Promise.all(replicas.map(({ opsUrl }) => metric(opsUrl, 'tollgate_replicas_live')));
      return !options.areTogether || seen.every((count) => count === replicas.length);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { replicas, admin: new Admin(replicas[0]?.url ?? ''), stop };
}

/** One request with a key: its status, and after how many milliseconds. */
export interface Asked {
  readonly status: number;
  readonly body: string;
  readonly headers: Headers;
  readonly tookMs: number;
}

export async function ask(url: string, secret: string): Promise<Asked> {
  const startedAt = performance.now();
  const response = await fetch(url, { headers: { authorization: `Bearer ${secret}` } });
  const body = await response.text();
  return { status: response.status, body, headers: response.headers, tookMs: performance.now() - startedAt };
}

/** Whether a replica decides without Redis. */
async function isDegraded({ opsUrl }: RunningGateway): Promise<boolean> {
  return (await metric(opsUrl, 'tollgate_limiter_degraded')) === 1;
}

/** Sends requests with a key that has room for them until the replicas decide without Redis, or with it again. */
export async function untilDegraded(
  replicas: readonly RunningGateway[],
  secret: string,
  degraded: boolean,
): Promise<void> {
  await Promise.all(
    replicas.map((replica) =>
      until(
        async () => {
          // Several at once, because each may wait for the timeout.
          await Promise.all([1, 2, 3, 4, 5, 6].map(() => ask(replica.url, secret)));
          return (await isDegraded(replica)) === degraded;
        },
        { longestPauseMs: 100 },
      ),
    ),
  );
}
