import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Random } from '../../platform/random.ts';
import { RedisChangeFeed } from './changes/redis-change-feed.ts';
import { RedisRecordVersions } from './changes/redis-record-versions.ts';
import { RedisWindowCounters } from './counters/redis-window-counters.ts';
import { hashSlotOf } from './decisions/hash-slot.ts';
import { RedisRateLimiter } from './decisions/redis-rate-limiter.ts';
import { ReplicaRegistry } from './decisions/replica-registry.ts';
import {
  CLOSE_STEP_MS,
  closeRedis,
  connectRedis,
  type RedisConnection,
  type RedisSettings,
} from './redis-connection.ts';
import { describeServers, findRedisFaults, type RedisServer } from './redis-health.ts';

/** What opening Redis needs of the platform. */
export interface OpenRedisPlatform {
  readonly log: Logger;
  readonly random: Random;
  readonly clock: Clock;
  /** Unique to this process: the name under which it is counted as a replica. */
  readonly replicaId: string;
}

/** Everything that is built on Redis, over three connections. */
export interface OpenRedis {
  readonly limiter: RedisRateLimiter;
  readonly versions: RedisRecordVersions;
  readonly changes: RedisChangeFeed;
  readonly replicas: ReplicaRegistry;
  readonly counters: RedisWindowCounters;
  /** Names the part of Redis that holds a key: parts fail separately. */
  readonly partOf: (keyId: string) => number;
  /** For usage: has no automatic pipelining, fails at once without a connection, sends a command twice only in a cluster. */
  readonly usageConnection: RedisConnection;
  /** Resolves once decisions can be made, or it is known that they can't, after a second at most. */
  firstAttempt(): Promise<void>;
  /** Rejects with `StoreUnavailable` if one of the servers that make decisions does not respond. */
  ping(): Promise<void>;
  /** Sentences, one for each reason not to work with the server, or with the masters of a cluster. Rejects with `StoreUnavailable`. */
  findFaults(): Promise<readonly string[]>;
  /** The server, or the masters of a cluster. Rejects with `StoreUnavailable`. */
  describeServers(): Promise<readonly RedisServer[]>;
  /** The last error of a connection that is not up, for `failureReason`: the error of a command says only that there is no connection. */
  lastFailure(): unknown;
  /** Takes the replica off the list and ends the connections. Never rejects. */
  close(): Promise<void>;
}

const FIRST_ATTEMPT_MS = 1000;
const LOOK_MS = 5;

/** Opens the connections and starts the replica's heartbeat. */
export function openRedis(settings: RedisSettings, platform: OpenRedisPlatform): OpenRedis {
  const decisions = connectRedis('decisions', settings, platform);
  const usageConnection = connectRedis('usage', settings, platform);
  const subscription = connectRedis('subscription', settings, platform);
  const connections = [decisions, usageConnection, subscription];
  const failures = new Map<RedisConnection, unknown>();
  for (const connection of connections) {
    connection.on('error', (error) => failures.set(connection, error));
    connection.on('ready', () => failures.delete(connection));
  }
  const changes = new RedisChangeFeed(subscription);
  onServerChange(decisions, () => changes.distrust());
  const replicas = new ReplicaRegistry(usageConnection, platform.replicaId, platform.clock);
  replicas.start();
  const { clock } = platform;
  const { timeoutMs } = settings;
  const limiter = new RedisRateLimiter({ decisions, clock, timeoutMs });
  return {
    limiter,
    versions: new RedisRecordVersions(usageConnection),
    changes,
    replicas,
    counters: new RedisWindowCounters(usageConnection, platform.random),
    partOf: settings.mode === 'cluster' ? hashSlotOf : () => 0,
    usageConnection,
    firstAttempt: async () => {
      const deadline = clock.monotonicMs() + FIRST_ATTEMPT_MS;
      while (!limiter.isReady && !failures.has(decisions) && clock.monotonicMs() < deadline)
        await pause(LOOK_MS);
    },
    ping: () => limiter.ping(),
    findFaults: async () => {
      const faults = await findRedisFaults(usageConnection);
      return changes.fault === undefined ? faults : [...faults, changes.fault];
    },
    describeServers: () => describeServers(usageConnection),
    lastFailure: () => failures.values().next().value,
    close: async () => {
      changes.stop();
      await Promise.race([replicas.stop(), pause(CLOSE_STEP_MS, undefined, { ref: false })]);
      await Promise.all(connections.map(closeRedis));
    },
  };
}

/**
 * Calls `changed` when decisions may go to another server. A new connection may lead to a server that was restarted with older data, or
 * was promoted without the last changes. In a cluster, so may a new master.
 */
function onServerChange(decisions: RedisConnection, changed: () => void): void {
  decisions.on('ready', changed);
  if (!(decisions instanceof Cluster)) return;
  decisions.on('+node', (node: Redis) => node.on('ready', changed));
  let known = '';
  decisions.on('refresh', () => {
    const masters = decisions.nodes('master').map(({ options: { host, port } }) => `${host}:${port}`);
    const now = masters.toSorted().join(' ');
    if (now === known) return;
    known = now;
    changed();
  });
}
