import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Random } from '../../platform/random.ts';
import { closeRedis, connectRedis, type RedisConnection, type RedisSettings } from './connection.ts';
import { RedisChangeFeed } from './redis-change-feed.ts';
import { RedisCountRestorer } from './redis-count-restorer.ts';
import { checkRedisHealth, type RedisHealth } from './redis-health.ts';
import { RedisRateLimiter } from './redis-rate-limiter.ts';
import { RedisRecordVersions } from './redis-record-versions.ts';
import { ReplicaRegistry } from './replica-registry.ts';

/** What opening Redis needs of the platform. */
export interface OpenRedisPlatform {
  readonly log: Logger;
  readonly random: Random;
  readonly clock: Clock;
  /** Unique to this process: the name under which it is counted as a replica. */
  readonly replicaId: string;
}

/** All that is built on Redis, over three connections. */
export interface OpenRedis {
  readonly limiter: RedisRateLimiter;
  readonly versions: RedisRecordVersions;
  readonly changes: RedisChangeFeed;
  readonly replicas: ReplicaRegistry;
  readonly countRestorer: RedisCountRestorer;
  /** For usage: not pipelined by itself, fails at once without a connection, never sends a command twice. */
  readonly usageConnection: RedisConnection;
  /**
   * Resolves with true as soon as all connections are up and every server can be asked for decisions, with false after `timeoutMs`.
   * A gateway starts without Redis too, but waits a moment for it.
   */
  waitUntilReady(timeoutMs: number): Promise<boolean>;
  /** Rejects with `StoreUnavailable` when a server that decides does not answer. */
  ping(): Promise<void>;
  /** Whether the server is fit for use. Rejects with `StoreUnavailable`. */
  checkHealth(): Promise<RedisHealth>;
  /** Takes the replica off the list and ends the connections. Never rejects. */
  close(): Promise<void>;
}

const LOOK_AGAIN_MS = 5;

/** Opens the connections and starts the replica's heartbeat. Throws only for a URL that can't be read. */
export function openRedis(settings: RedisSettings, platform: OpenRedisPlatform): OpenRedis {
  const decisions = connectRedis('decisions', settings, platform);
  const usageConnection = connectRedis('usage', settings, platform);
  const subscription = connectRedis('subscription', settings, platform);
  const connections = [decisions, usageConnection, subscription];
  const changes = new RedisChangeFeed(subscription);
  const replicas = new ReplicaRegistry(usageConnection, platform.replicaId, platform.clock);
  replicas.start();
  const { clock } = platform;
  const { timeoutMs } = settings;
  const limiter = new RedisRateLimiter({ decisions, background: usageConnection, clock, timeoutMs });
  return {
    limiter,
    versions: new RedisRecordVersions(usageConnection),
    changes,
    replicas,
    countRestorer: new RedisCountRestorer(usageConnection),
    usageConnection,
    waitUntilReady: (timeoutMs) =>
      holdsWithin(timeoutMs, () => limiter.isReady && connections.every(({ status }) => status === 'ready')),
    ping: () => limiter.ping(),
    checkHealth: () => checkRedisHealth(usageConnection),
    close: async () => {
      changes.stop();
      await replicas.stop();
      await Promise.all(connections.map(closeRedis));
    },
  };
}

async function holdsWithin(timeoutMs: number, claim: () => boolean): Promise<boolean> {
  const deadline = AbortSignal.timeout(timeoutMs);
  while (!claim()) {
    if (deadline.aborted) return false;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
  return true;
}
