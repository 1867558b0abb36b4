import { Cluster, type Redis } from 'ioredis';
import { failureReason } from '../failure-reason.ts';
import type { RedisConnection } from './redis-connection.ts';
import { redisUnavailable } from './redis-failure.ts';

/** A server, as its INFO describes it. */
export interface RedisServer {
  /** Host and port. */
  readonly address: string;
  /** The server's own version, or the version of Redis that it is compatible with. */
  readonly version: string;
  readonly role: string;
  /** Empty if the server does not report it. */
  readonly evictionPolicy: string;
  /** Whether it has an append-only file, so that a restart loses a second of writes at most. */
  readonly isAppendOnly: boolean;
}

/** A server, and whether it takes writes. */
export interface InspectedServer extends RedisServer {
  /** The part of its `maxmemory` that it uses; 0 if it has no maximum. From about 1 on it rejects writes. */
  readonly memoryUsed: number;
  /** Why it rejects commands although it is reached; undefined if it does not. */
  readonly rejection: string | undefined;
}

const OLDEST_MAJOR = 7;

/**
 * The faults of the server, or of all masters of a cluster, each once: they can be trusted with counts from version 7 on (PEXPIRETIME), and
 * without eviction, which would clear counts and the tombstones of deleted keys. Rejects with `StoreUnavailable`, also if one of several
 * masters does not respond.
 */
export async function findRedisFaults(redis: RedisConnection): Promise<readonly string[]> {
  const servers = await describeServers(redis);
  return [...new Set(servers.flatMap(serverFaults))];
}

/** The server, or the masters of a cluster. Rejects with `StoreUnavailable`. */
export function describeServers(redis: RedisConnection): Promise<readonly RedisServer[]> {
  return ofServers(redis, async (node) => describe(node, await node.info()));
}

/** The same, with whether they take writes. */
export function inspectServers(redis: RedisConnection): Promise<readonly InspectedServer[]> {
  return ofServers(redis, async (node) => {
    const info = await node.info();
    const maxMemory = Number(fieldOf(info, 'maxmemory'));
    return {
      ...describe(node, info),
      memoryUsed: maxMemory > 0 ? Number(fieldOf(info, 'used_memory')) / maxMemory : 0,
      // A server that can't write to its disk rejects PING as it rejects writes.
      rejection: await node.ping().then(() => undefined, failureReason),
    };
  });
}

async function ofServers<T>(
  redis: RedisConnection,
  read: (node: Redis) => Promise<T>,
): Promise<readonly T[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  try {
    if (nodes.length === 0) throw new Error('the cluster is not connected');
    return await Promise.all(nodes.map(read));
  } catch (error) {
    throw redisUnavailable(error);
  }
}

/** From INFO and not CONFIG GET, which managed servers forbid. */
function describe(node: Redis, info: string): RedisServer {
  return {
    address: addressOf(node),
    version: fieldOf(info, 'redis_version'),
    role: fieldOf(info, 'role'),
    evictionPolicy: fieldOf(info, 'maxmemory_policy'),
    isAppendOnly: fieldOf(info, 'aof_enabled') === '1',
  };
}

/** Sentences, one for each reason not to work with a server. They hold no address and no credential. */
export function serverFaults({
  version,
  evictionPolicy,
}: Pick<RedisServer, 'version' | 'evictionPolicy'>): readonly string[] {
  const faults: string[] = [];
  if (!(Number.parseInt(version, 10) >= OLDEST_MAJOR)) {
    faults.push(
      `Redis ${version || 'of unknown version'} is too old: version ${OLDEST_MAJOR} or newer is needed`,
    );
  }
  if (evictionPolicy !== '' && evictionPolicy !== 'noeviction') {
    faults.push(
      `Redis evicts keys (maxmemory-policy ${evictionPolicy}), so counts can be lost: set it to noeviction`,
    );
  }
  return faults;
}

/** Empty if the server does not report it. */
function fieldOf(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
}

/** With sentinels the options name no server: the socket has its address. */
function addressOf({ options, stream }: Redis): string {
  const { host, port } = options.sentinels
    ? { host: stream.remoteAddress, port: stream.remotePort }
    : options;
  return `${host?.includes(':') ? `[${host}]` : host}:${port}`;
}
