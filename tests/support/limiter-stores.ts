import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { InProcessRateLimiter } from '../../src/limiter/in-process-rate-limiter.ts';
import { InProcessRecordVersions } from '../../src/limiter/in-process-record-versions.ts';
import { parsePeriod } from '../../src/limiter/period.ts';
import type { Decision, LimitSubject, Quota, RateLimiter } from '../../src/limiter/rate-limiter.ts';
import type { ChangeFeed, RecordVersions } from '../../src/limiter/record-versions.ts';
import { WindowTable } from '../../src/limiter/window-table.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Logger } from '../../src/platform/logger.ts';
import { systemRandom } from '../../src/platform/random.ts';
import type { RedisMode } from '../../src/storage/redis/connection.ts';
import { periodKey, versionKey, windowKey } from '../../src/storage/redis/key-names.ts';
import { type OpenRedis, openRedis } from '../../src/storage/redis/open-redis.ts';
import { ManualClock } from './manual-clock.ts';
import { startRedisCluster } from './redis-cluster.ts';
import { testRedisUrl } from './stores.ts';
import { until } from './until.ts';

/** One implementation of the limiter's ports, as several replicas see it. */
export interface LimiterStore {
  /** At least one; each has connections of its own. */
  readonly limiters: readonly RateLimiter[];
  readonly versions: RecordVersions;
  readonly feeds: readonly ChangeFeed[];
  /** Resolves when the store's time has passed the instant. */
  reach(instantMs: number): Promise<void>;
  /** As if the key's open window had ended. */
  endWindow(keyId: string): Promise<void>;
  /** As if what is stored of the key's version had lapsed. */
  lapseVersion(keyId: string): Promise<void>;
  close(): Promise<void>;
}

/** Every implementation, by the name that its tests carry. */
export const LIMITER_STORES: Readonly<Record<string, () => Promise<LimiterStore>>> = {
  'in the process': openInProcess,
  'in Redis': () => openInRedis(testRedisUrl(), 'single'),
  'in Redis Cluster': openInCluster,
};

async function openInProcess(): Promise<LimiterStore> {
  const clock = new ManualClock(Date.UTC(2026, 0, 31, 10, 20, 30, 456));
  const table = new WindowTable();
  const versions = new InProcessRecordVersions(table, clock);
  return {
    limiters: [new InProcessRateLimiter(table, clock), new InProcessRateLimiter(table, clock)],
    versions,
    feeds: [versions],
    reach: async (instantMs) => clock.advance(Math.max(instantMs - clock.nowMs(), 0)),
    endWindow: async (keyId) => table.setWindow(keyId, undefined, clock.nowMs()),
    lapseVersion: async (keyId) => table.setVersion(keyId, { version: '', lapsesAtMs: 0 }, clock.nowMs()),
    close: async () => {},
  };
}

async function openInRedis(url: string, mode: RedisMode): Promise<LimiterStore> {
  const replicas = [openReplica(url, mode), openReplica(url, mode), openReplica(url, mode)];
  const [first] = replicas;
  if (first === undefined) throw new Error('no replica');
  for (const replica of replicas) await replica.waitUntilReady(10_000);
  await until(() => replicas.every((replica) => replica.changes.isSubscribed));
  const direct = first.usageConnection;
  return {
    limiters: replicas.map(({ limiter }) => limiter),
    versions: first.versions,
    feeds: replicas.map(({ changes }) => changes),
    reach: (instantMs) =>
      until(async () => (await first.limiter.peek(newKeyId(), quota(1, 'hour'))).nowMs > instantMs, {
        timeoutMs: 10_000,
      }),
    endWindow: async (keyId) => void (await direct.del(windowKey(keyId), periodKey(keyId))),
    lapseVersion: async (keyId) => void (await direct.del(versionKey(keyId))),
    close: async () => void (await Promise.all(replicas.map((replica) => replica.close()))),
  };
}

async function openInCluster(): Promise<LimiterStore> {
  const cluster = await startRedisCluster(3);
  const store = await openInRedis(cluster.url, 'cluster');
  return {
    ...store,
    close: async () => {
      await store.close();
      await cluster.stop();
    },
  };
}

/** All that one replica opens on Redis, with a timeout that a busy test machine keeps. */
export function openReplica(
  url: string,
  mode: RedisMode = 'single',
  options: { readonly timeoutMs?: number; readonly log?: Logger } = {},
): OpenRedis {
  const { timeoutMs = 2000, log = pino({ level: 'silent' }) } = options;
  return openRedis(
    { url, mode, timeoutMs },
    { log, random: systemRandom, clock: systemClock, replicaId: randomUUID() },
  );
}

/** A key that no other test uses. */
export function newKeyId(): string {
  return `key_${randomUUID()}`;
}

/** Throws for a period that can't be read. */
export function quota(limit: number, periodText: string): Quota {
  const period = parsePeriod(periodText);
  if (period === undefined) throw new Error(`not a period: ${periodText}`);
  return { limit, period };
}

/** A copy with version 1.0 that was read for the request, where nothing else is said. */
export function subject(keyId: string, fields: Partial<LimitSubject> = {}): LimitSubject {
  return { keyId, version: '1.0', fresh: true, quota: quota(10, 'hour'), ...fields };
}

/** The decision as a promise. Rejects when the limiter calls back twice. */
export function decide(limiter: RateLimiter, asked: LimitSubject): Promise<Decision> {
  const { promise, resolve, reject } = Promise.withResolvers<Decision>();
  let calls = 0;
  limiter.decide(asked, (decision) => {
    calls += 1;
    if (calls > 1) reject(new Error('decided twice'));
    // A turn later, so that a second call is seen.
    setImmediate(() => resolve(decision));
  });
  return promise;
}
