import { Cluster } from 'ioredis';
import type { Clock } from '../../platform/clock.ts';
import { type LiveReplica, ReplicaRegistry } from './decisions/replica-registry.ts';
import {
  closeRedis,
  connectRedis,
  type RedisConnection,
  type RedisPlatform,
  type RedisSettings,
} from './redis-connection.ts';
import { redisUnavailable } from './redis-failure.ts';
import { type InspectedServer, inspectServers } from './redis-health.ts';

/** The result of `inspectRedis`, which changes nothing in Redis. */
export interface RedisInspection {
  /** The server, or the masters of a cluster. */
  readonly servers: readonly InspectedServer[];
  /** The shortest of a few round trips. */
  readonly latencyMs: number;
  /** By how many milliseconds the server's clock is ahead of ours, accurate to half the latency. */
  readonly clockAheadMs: number;
  readonly replicas: readonly LiveReplica[];
}

const ROUND_TRIPS = 5;
const LISTED_REPLICAS = 1000;

/** Inspects Redis over one connection and closes it. Unlike `openRedis` it registers no replica. Rejects with `StoreUnavailable`. */
export async function inspectRedis(
  settings: RedisSettings,
  { clock, deadlineMs, ...platform }: RedisPlatform & { readonly clock: Clock; readonly deadlineMs: number },
): Promise<RedisInspection> {
  const redis = connectRedis('usage', settings, platform);
  try {
    await connected(redis, deadlineMs);
    const servers = await inspectServers(redis);
    const times = await roundTrips(redis, clock);
    const { replicas } = await new ReplicaRegistry(redis, 'none', clock).list(LISTED_REPLICAS);
    return { servers, replicas, ...times };
  } catch (error) {
    throw redisUnavailable(error);
  } finally {
    await closeRedis(redis);
  }
}

/** Rejects with the first connection error: an inspection does not wait until Redis is up. */
function connected(redis: RedisConnection, deadlineMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new Error('The connection timed out.')), deadlineMs);
  redis.once('ready', resolve);
  redis.on('error', reject);
  return promise.finally(() => clearTimeout(timer));
}

async function roundTrips(
  redis: RedisConnection,
  clock: Clock,
): Promise<Pick<RedisInspection, 'latencyMs' | 'clockAheadMs'>> {
  const node = redis instanceof Cluster ? redis.nodes('master')[0] : redis;
  let best = { latencyMs: Number.POSITIVE_INFINITY, clockAheadMs: 0 };
  for (let trip = 0; trip < ROUND_TRIPS && node !== undefined; trip += 1) {
    const startedAtMs = clock.monotonicMs();
    const [seconds = 0, microseconds = 0] = (await node.time()).map(Number);
    const latencyMs = clock.monotonicMs() - startedAtMs;
    const serverMs = seconds * 1000 + microseconds / 1000;
    if (latencyMs < best.latencyMs)
      best = { latencyMs, clockAheadMs: serverMs + latencyMs / 2 - clock.nowMs() };
  }
  return best;
}
