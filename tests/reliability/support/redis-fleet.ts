import { Admin } from '../../support/admin.ts';
import { ENCRYPTION_KEY, type GatewayProcess, ROOT_TOKEN, startGateway } from '../../support/gateway.ts';
import { createMigratedDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';
import { metric } from './probe.ts';
import { startBackend } from './test-backend.ts';

/** Replicas in front of one backend, over one Postgres database of their own. */
export interface RedisFleet {
  readonly replicas: readonly GatewayProcess[];
  readonly admin: Admin;
  stop(): Promise<void>;
}

/** Starts a replica with each of the settings, which must say where Redis is. Resolves when each knows of all, if they share one. */
export async function startRedisFleet(
  settings: readonly Readonly<Record<string, string>>[],
  { areTogether = true }: { readonly areTogether?: boolean } = {},
): Promise<RedisFleet> {
  const database = await createMigratedDatabase();
  const backend = await startBackend();
  const environment = { BACKEND_URL: backend.url, DATABASE_URL: database.url, ROOT_TOKEN, ENCRYPTION_KEY };
  const started = await Promise.allSettled(settings.map((own) => startGateway({ ...environment, ...own })));
  const replicas = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const stop = async () => {
    await Promise.all(replicas.map((replica) => replica.kill()));
    await backend.stop();
    await database.drop();
  };
  try {
    for (const one of started) if (one.status === 'rejected') throw one.reason;
    await until(async () => {
      const seen = await Promise.all(replicas.map(({ opsUrl }) => metric(opsUrl, 'tollgate_replicas_live')));
      return !areTogether || seen.every((count) => count === replicas.length);
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
async function isDegraded({ opsUrl }: GatewayProcess): Promise<boolean> {
  return (await metric(opsUrl, 'tollgate_limiter_degraded')) === 1;
}

/** Sends requests with a key that has room for them until the replicas decide without Redis, or with it again. */
export async function untilDegraded(
  replicas: readonly GatewayProcess[],
  secret: string,
  degraded: boolean,
): Promise<void> {
  await Promise.all(
    replicas.map((replica) =>
      until(async () => {
        // Several at once, because each may wait for the timeout.
        await Promise.all([1, 2, 3, 4, 5, 6].map(() => ask(replica.url, secret)));
        return (await isDegraded(replica)) === degraded;
      }),
    ),
  );
}
