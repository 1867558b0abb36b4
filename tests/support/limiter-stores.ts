import { randomUUID } from 'node:crypto';
import { Cluster } from 'ioredis';
import { pino } from 'pino';
import { InProcessRateLimiter } from '../../src/limiter/in-process/in-process-rate-limiter.ts';
import { InProcessRecordVersions } from '../../src/limiter/in-process/in-process-record-versions.ts';
import { InProcessWindowCounters } from '../../src/limiter/in-process/in-process-window-counters.ts';
import { WindowTable } from '../../src/limiter/in-process/window-table.ts';
import { parsePeriod } from '../../src/limiter/period.ts';
import type { CountedDecision, Decision, LimitSubject, RateLimiter } from '../../src/limiter/rate-limiter.ts';
import type { ChangeFeed, SharedVersions } from '../../src/limiter/record-versions.ts';
import { type Limit, remainingIn, tightestWindow } from '../../src/limiter/request-limits.ts';
import type { WindowCounters } from '../../src/limiter/window-counters.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Logger } from '../../src/platform/logger.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { redisUrl } from '../../src/settings/redis-url.ts';
import { type OpenRedis, openRedis } from '../../src/storage/redis/open-redis.ts';
import type { RedisMode } from '../../src/storage/redis/redis-connection.ts';
import {
  customersKeyName,
  grantedKeyName,
  versionKeyName,
  windowKeyName,
} from '../../src/storage/redis/redis-key-names.ts';
import { ManualClock } from './manual-clock.ts';
import { openInCluster } from './redis-cluster.ts';
import { testRedisUrl } from './stores.ts';
import { until } from './until.ts';

/** One implementation of the limiter's ports, as several replicas see it. */
export interface LimiterStore {
  /** At least one; each has its own connections. */
  readonly limiters: readonly RateLimiter[];
  readonly counters: WindowCounters;
  readonly versions: SharedVersions;
  readonly feeds: readonly ChangeFeed[];
  /** Resolves when the store's time has passed the instant. */
  reach(instantMs: number): Promise<void>;
  /** As if an open window of the key had ended, by its name. */
  endWindow(keyId: string, windowName: string): Promise<void>;
  /** As if what is stored of the key's version had expired. */
  expireVersion(keyId: string): Promise<void>;
  close(): Promise<void>;
}

/** Every implementation, by the name that its tests carry. */
export const LIMITER_STORES: Readonly<Record<string, () => Promise<LimiterStore>>> = {
  'in the process': openInProcess,
  'in Redis': () => openInRedis(testRedisUrl(), 'single'),
  'in Redis Cluster': () => openInCluster((url) => openInRedis(url, 'cluster')),
};

async function openInProcess(): Promise<LimiterStore> {
  const clock = new ManualClock(Date.UTC(2026, 0, 31, 10, 20, 30, 456));
  const table = new WindowTable();
  const versions = new InProcessRecordVersions(table, clock);
  return {
    limiters: [new InProcessRateLimiter(table, clock), new InProcessRateLimiter(table, clock)],
    counters: new InProcessWindowCounters(table, clock),
    versions,
    feeds: [versions],
    reach: async (instantMs) => clock.advance(Math.max(instantMs - clock.nowMs(), 0)),
    endWindow: async (keyId, windowName) => {
      table.closeWindow(keyId, windowName);
      table.closeCustomerWindows(keyId, (name) => name === windowName);
    },
    expireVersion: async (keyId) => table.setVersion(keyId, { version: '', expiresAtMs: 0 }, clock.nowMs()),
    close: async () => {},
  };
}

async function openInRedis(url: string, mode: RedisMode): Promise<LimiterStore> {
  const replicas = [openReplica(url, mode), openReplica(url, mode), openReplica(url, mode)];
  const [first] = replicas;
  if (first === undefined) throw new Error('no replica');
  await until(() => replicas.every(isReady));
  const direct = first.usageConnection;
  return {
    limiters: replicas.map(({ limiter }) => limiter),
    counters: first.counters,
    versions: first.versions,
    feeds: replicas.map(({ changes }) => changes),
    reach: (instantMs) =>
      until(async () => (await peek(first.counters, newKeyId(), quota(1, 'hour'))).nowMs > instantMs),
    endWindow: async (keyId, windowName) => {
      await direct.del(windowKeyName(keyId, windowName), grantedKeyName(keyId, windowName));
      await direct.zrem(customersKeyName(keyId), windowName);
    },
    expireVersion: async (keyId) => void (await direct.del(versionKeyName(keyId))),
    close: async () => void (await Promise.all(replicas.map((replica) => replica.close()))),
  };
}

/** All that one replica opens on Redis, with a timeout that a busy test machine keeps. */
export function openReplica(
  url: string,
  mode: RedisMode = 'single',
  options: { readonly timeoutMs?: number; readonly log?: Logger } = {},
): OpenRedis {
  const { timeoutMs = 5000, log = pino({ level: 'silent' }) } = options;
  return openRedis(
    { address: redisUrl(url), mode, timeoutMs },
    { log, random: systemRandom, clock: systemClock, replicaId: randomUUID() },
  );
}

/** Whether all connections of a replica are up, and every server is ready for decisions. A gateway starts without waiting for that. */
export function isReady({ limiter, usageConnection, changes }: OpenRedis): boolean {
  const servers = usageConnection instanceof Cluster ? usageConnection.nodes('master') : [];
  const isUp = [usageConnection, ...servers].every(({ status }) => status === 'ready');
  return limiter.isReady && isUp && changes.isSubscribed;
}

/** A key that no other test uses. */
export function newKeyId(): string {
  return `key_${randomUUID()}`;
}

/** An enforced limit of the key, `main` where nothing else is said. Throws for a period that can't be read. */
export function quota(limit: number, periodText: string, fields: Partial<Limit> = {}): Limit {
  const period = parsePeriod(periodText);
  if (period === undefined) throw new Error(`not a period: ${periodText}`);
  const { id = 'main' } = fields;
  return {
    id,
    limit,
    baseLimit: limit,
    endsAtMs: null,
    period,
    periodText,
    per: 'key',
    mode: 'enforce',
    windowName: `${id}:${period.token}`,
    ...fields,
  };
}

/** What a test says of a request. */
export interface TestSubject extends LimitSubject {
  /** The only limit that applies, or none. */
  readonly quota: Limit | null;
}

/** A copy with version 1.0 that was read for the request, under one limit of 10 an hour, where nothing else is said. */
export function subject(keyId: string, fields: Partial<TestSubject> = {}): LimitSubject {
  const { quota: only = quota(10, 'hour'), ...others } = fields;
  const limits = only === null ? [] : [only];
  const request = { fresh: true, limits, cost: 1, customerId: 'anonymous', mayRelease: false };
  return { keyId, version: '1.0', ...request, ...others };
}

/** A decision with what most tests look at: the tightest of its windows. */
export type FlatDecision = Decision & { readonly remaining?: number; readonly resetAtMs?: number };

/** The decision as a promise. Rejects when the limiter calls back twice. */
export function decide(limiter: RateLimiter, asked: LimitSubject): Promise<FlatDecision> {
  const { promise, resolve, reject } = Promise.withResolvers<FlatDecision>();
  let calls = 0;
  limiter.decide(asked, (decision) => {
    calls += 1;
    if (calls > 1) reject(new Error('decided twice'));
    // A turn later, so that a second call is seen.
    setImmediate(() => resolve(flat(decision)));
  });
  return promise;
}

/** See `FlatDecision`. */
export function flat(decision: Decision): FlatDecision {
  const tightest = 'windows' in decision ? tightestWindow(decision.windows) : undefined;
  if (tightest === undefined) return decision;
  return { ...decision, remaining: remainingIn(tightest), resetAtMs: tightest.resetAtMs };
}

/** What the window of one limit of a key holds. */
export async function peek(
  counters: WindowCounters,
  keyId: string,
  limit: Limit,
): Promise<{ readonly used: number; readonly resetAtMs: number | null; readonly nowMs: number }> {
  const { counters: read, nowMs } = await counters.read({ keyId, limits: [limit], customerId: 'anonymous' });
  return { used: read[0]?.used ?? Number.NaN, resetAtMs: read[0]?.resetAtMs ?? null, nowMs };
}

/** A decision about one window, as a limiter gives it. */
export function counted(
  kind: 'allowed' | 'limited',
  {
    limit = quota(10, 'hour'),
    used = 1,
    resetAtMs = 2,
    nowMs = 1,
    degraded = false,
  }: {
    readonly limit?: Limit;
    readonly used?: number;
    readonly resetAtMs?: number;
    readonly nowMs?: number;
    readonly degraded?: boolean;
  } = {},
): CountedDecision {
  const isExceeded = kind === 'limited';
  const window = { limit, quota: limit.limit, used, resetAtMs, isExceeded, isShared: false };
  return { kind, windows: [window], nowMs, degraded };
}
