import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import type { Logger } from '../../../src/platform/logger.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import { redisUrl } from '../../../src/settings/redis-url.ts';
import { InProcessLiveUsage } from '../../../src/storage/embedded/in-process-live-usage.ts';
import {
  closeRedis,
  connectRedis,
  type RedisConnection,
  type RedisMode,
} from '../../../src/storage/redis/redis-connection.ts';
import { RedisLiveUsage } from '../../../src/storage/redis/usage/redis-live-usage.ts';
import { createUsage, type Usage, type UsageOptions } from '../../../src/usage/create-usage.ts';
import type { LiveUsage, UsageBatch, WriteOutcome } from '../../../src/usage/live-usage.ts';
import { LiveUsageWriter } from '../../../src/usage/live-usage-writer.ts';
import { shardOf } from '../../../src/usage/shards.ts';
import { UsageBuffer } from '../../../src/usage/usage-buffer.ts';
import type { UsageSlice } from '../../../src/usage/usage-slice.ts';
import { openInCluster } from '../../support/redis-cluster.ts';
import { testRedisUrl } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

export const silent = pino({ level: 'silent' });

/** One implementation of the live usage, as two replicas see it. */
export interface LiveStore {
  readonly first: LiveUsage;
  readonly second: LiveUsage;
  close(): Promise<void>;
}

/** Every implementation, by the name that its tests carry. */
export const LIVE_STORES: Readonly<Record<string, () => Promise<LiveStore>>> = {
  'in the process': async () => {
    const live = new InProcessLiveUsage(systemClock, systemRandom);
    return { first: live, second: live, close: async () => {} };
  },
  'in Redis': () => openInRedis(testRedisUrl(), 'single'),
  'in Redis Cluster': () => openInCluster((url) => openInRedis(url, 'cluster')),
};

interface ConnectionOptions {
  readonly mode?: RedisMode;
  /** One that a busy test machine keeps by default. */
  readonly timeoutMs?: number;
}

/** A connection for the usage of one replica. Resolves when it is ready. */
export async function connectForUsage(
  url: string,
  { mode = 'single', timeoutMs = 5000 }: ConnectionOptions = {},
): Promise<RedisConnection> {
  const server = { address: redisUrl(url), mode, timeoutMs };
  const redis = connectRedis('usage', server, { log: silent, random: systemRandom });
  await until(() => redis.status === 'ready');
  return redis;
}

/** Live usage of one replica in Redis, on a separate connection. */
export async function openRedisUsage(
  url: string,
  options?: ConnectionOptions,
): Promise<{ readonly live: RedisLiveUsage; close(): Promise<void> }> {
  const redis = await connectForUsage(url, options);
  const live = new RedisLiveUsage(redis, systemClock);
  return { live, close: () => closeRedis(redis) };
}

/** The usage of one replica, with what suits most tests where the options say nothing else. */
export function usageOver(
  options: Pick<UsageOptions, 'live' | 'history' | 'flushEveryMs'> & Partial<UsageOptions>,
): Usage {
  return createUsage({
    mask: (name) => name,
    ...{ clock: systemClock, random: systemRandom, log: silent },
    ...{ retentionDays: 90, dailyRetentionDays: 400 },
    ...options,
  });
}

/** What a replica records in, and the writer that writes that to these stores when the test says so. */
export function recordingOver(
  { live, history }: Pick<ConstructorParameters<typeof LiveUsageWriter>[0], 'live' | 'history'>,
  { clock = systemClock, log = silent }: { readonly clock?: Clock; readonly log?: Logger } = {},
): { readonly buffer: UsageBuffer; readonly writer: LiveUsageWriter } {
  const buffer = new UsageBuffer({ clock: systemClock, mask: (name) => name });
  const writer = new LiveUsageWriter({ buffer, live, history, clock, log, random: systemRandom });
  return { buffer, writer };
}

/** As if the leases of all flushers had run out. */
export async function expireLeases(url: string): Promise<void> {
  const redis = new Redis(url);
  for (const lease of await redis.keys('tg:{usage-*}:lease')) await redis.del(lease);
  redis.disconnect();
}

/** Takes what a key's shard has, as if no flusher had it, and gives it back. */
export async function takeAll(live: LiveUsage, keyId: string): Promise<readonly UsageBatch[]> {
  const shard = shardOf(keyId);
  await live.release(shard, 0);
  const batches = await live.take(shard);
  await live.release(shard, 0);
  if (batches === undefined) throw new Error('another flusher has the shard');
  return batches;
}

/** Writes slices of one key, each time as another writer, also than those of other test files, which may use the same Redis. Resolves with the outcome. */
export async function writeSlices(live: LiveUsage, ...slices: readonly UsageSlice[]): Promise<WriteOutcome> {
  const shard = shardOf(slices[0]?.keyId ?? '');
  const write = { shard, writer: `test-${randomUUID()}`, sequence: 1, previous: 0, recorded: slices };
  return (await live.write([write]))[0] ?? 'unknown';
}

async function openInRedis(url: string, mode: RedisMode): Promise<LiveStore> {
  const [first, second] = await Promise.all([openRedisUsage(url, { mode }), openRedisUsage(url, { mode })]);
  return {
    first: first.live,
    second: second.live,
    close: async () => {
      await first.close();
      await second.close();
    },
  };
}

/** A key that no other test uses. */
export function newKeyId(): string {
  return `key_${randomUUID()}`;
}
