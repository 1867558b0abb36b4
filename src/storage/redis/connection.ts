import { Cluster, type CommonRedisOptions, Redis } from 'ioredis';
import type { Logger } from '../../platform/logger.ts';
import type { Random } from '../../platform/random.ts';
import { safeRedisError } from './redis-failure.ts';
import { parseRedisUrl, type RedisAddress } from './redis-url.ts';

/** A connection to one server (or the master that sentinels name), or to all masters of a cluster. */
export type RedisConnection = Redis | Cluster;

/** How Redis is run: one server, Redis Cluster, or a master and replicas watched by sentinels. */
export type RedisMode = 'single' | 'cluster' | 'sentinel';

/** Where Redis is and how long it may take. */
export interface RedisSettings {
  /** As `parseRedisUrl` reads it; holds a password, so it is never logged. */
  readonly url: string;
  readonly mode: RedisMode;
  /** The longest that a decision may take. Other commands get more, see `connectRedis`. */
  readonly timeoutMs: number;
}

/** What connecting needs of the platform. */
export interface RedisPlatform {
  readonly log: Logger;
  readonly random: Random;
}

/**
 * What a connection is for.
 *
 * - `decisions`: the hot path. All commands of one event-loop turn go out together, each may take `timeoutMs`.
 * - `usage`: everything that is not a decision: usage, changes, heartbeats. Larger pipelines, so ten times as long.
 * - `subscription`: listens. Waits for Redis as long as it takes.
 */
export type RedisPurpose = 'decisions' | 'usage' | 'subscription';

/** Replies keep their shapes of RESP2, which is the client's default. */
type ClientOptions = Omit<CommonRedisOptions, 'replyMapping'>;

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2000;
/** What a socket gets to close by itself; the client waits for it even where the socket is gone already. */
const DISCONNECT_TIMEOUT_MS = 500;

/**
 * Connects, and connects again for as long as the process runs. Never throws for a server that is away: commands fail at once while
 * there is no connection, and none is sent a second time after one was lost, because it may have been carried out. Throws for a
 * URL that can't be read.
 */
export function connectRedis(
  purpose: RedisPurpose,
  settings: RedisSettings,
  platform: RedisPlatform,
): RedisConnection {
  const address = parseRedisUrl(settings.url);
  const options = { ...commonOptions(purpose, settings, platform.random), ...credentials(address) };
  const redis = open(settings, address, options);
  logStateChanges(redis, purpose, platform.log);
  return redis;
}

/** Ends a connection: politely where it is up, so that what was sent is answered first. Never rejects. */
export async function closeRedis(redis: RedisConnection): Promise<void> {
  try {
    if (redis.status === 'ready') {
      await redis.quit();
      return;
    }
  } catch {
    // A server that does not answer is left without its answer.
  }
  redis.disconnect();
}

function open(settings: RedisSettings, address: RedisAddress, options: ClientOptions): RedisConnection {
  switch (settings.mode) {
    case 'single':
      return new Redis({
        ...options,
        ...address.nodes[0],
        db: address.database,
        disconnectTimeout: DISCONNECT_TIMEOUT_MS,
      });
    case 'sentinel':
      return new Redis({
        ...options,
        sentinels: [...address.nodes],
        name: address.masterName,
        sentinelCommandTimeout: patienceMs(settings),
        db: address.database,
        disconnectTimeout: DISCONNECT_TIMEOUT_MS,
        ...(address.isTls && { enableTLSForSentinelMode: true, sentinelTLS: {} }),
        ...(address.sentinelPassword !== undefined && { sentinelPassword: address.sentinelPassword }),
      });
    case 'cluster': {
      const { retryStrategy, enableOfflineQueue, enableAutoPipelining, ...redisOptions } = options;
      return new Cluster([...address.nodes], {
        scaleReads: 'master',
        clusterRetryStrategy: retryStrategy,
        clusterNodeRetryStrategy: retryStrategy,
        enableOfflineQueue,
        enableAutoPipelining,
        redisOptions,
      });
    }
  }
}

function commonOptions(purpose: RedisPurpose, settings: RedisSettings, random: Random): ClientOptions {
  const retryStrategy = (attempt: number) => retryDelayMs(attempt, random);
  const patientMs = patienceMs(settings);
  const common: ClientOptions = {
    retryStrategy,
    autoResendUnfulfilledCommands: false,
    enableReadyCheck: true,
    connectTimeout: patientMs,
    connectionName: `tollgate-${purpose}`,
    // A server that became a replica refuses writes: whoever is the master now is found by connecting again.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  if (purpose === 'subscription') {
    return { ...common, maxRetriesPerRequest: null, socketTimeout: 3 * patientMs };
  }
  return {
    ...common,
    enableAutoPipelining: purpose === 'decisions',
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: purpose === 'decisions' ? settings.timeoutMs : patientMs,
    // A server that went without a word leaves a socket that looks open: it is given up when nothing comes back on it.
    socketTimeout: 2 * patientMs,
  };
}

/** For everything that is not a decision. */
function patienceMs({ timeoutMs }: RedisSettings): number {
  return Math.max(10 * timeoutMs, 2000);
}

function credentials(address: RedisAddress): ClientOptions & { tls?: object } {
  return {
    ...(address.username !== undefined && { username: address.username }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.isTls && { tls: {} }),
  };
}

/** Doubles up to the cap; half of it is random, so that replicas do not come back all at once. */
function retryDelayMs(attempt: number, random: Random): number {
  const cap = Math.min(FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 16), LONGEST_RETRY_MS);
  const fraction = (random.bytes(1)[0] ?? 0) / 256;
  return Math.round(cap / 2 + (cap / 2) * fraction);
}

/** One line when the connection is lost or can't be made, one when it is back; however many attempts lie between. */
function logStateChanges(redis: RedisConnection, purpose: RedisPurpose, log: Logger): void {
  let isLost = false;
  let reason: Error | undefined;
  const lost = () => {
    if (isLost) return;
    isLost = true;
    log.warn({ connection: purpose, reason: reason?.message, code: codeOf(reason) }, 'Redis connection lost');
  };
  redis.on('error', (error: Error) => {
    reason = safeRedisError(error);
    if (redis.status !== 'ready') lost();
  });
  // And not 'close', which also ends a connection that we end.
  redis.on('reconnecting', lost);
  redis.on('ready', () => {
    if (isLost) log.info({ connection: purpose }, 'Redis connection is back');
    isLost = false;
    reason = undefined;
  });
}

function codeOf(error: Error | undefined): unknown {
  return error !== undefined && 'code' in error ? error.code : undefined;
}
