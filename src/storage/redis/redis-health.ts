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

/** Whether a server is healthy. `version` is as in `RedisServer`. */
export interface RedisHealth {
  readonly version: string;
  /** Sentences, one for each reason not to work with this server. They hold no address and no credential. */
  readonly faults: readonly string[];
}

const OLDEST_MAJOR = 7;

/**
 * Whether the server can be trusted with counts: version 7 or newer (PEXPIRETIME), and no eviction, which would clear counts
 * and the tombstones of deleted keys. Rejects with `StoreUnavailable`.
 */
export async function checkRedisHealth(redis: RedisConnection): Promise<RedisHealth> {
  try {
    // INFO and not CONFIG GET, which managed servers forbid.
    return readHealth(await redis.info());
  } catch (error) {
    throw redisUnavailable(error);
  }
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
    return await Promise.all(nodes.map(read));
  } catch (error) {
    throw redisUnavailable(error);
  }
}

function describe(node: Redis, info: string): RedisServer {
  return { address: addressOf(node), ...readServer(info) };
}

/** Reads the health of a server from the text of INFO. */
export function readHealth(info: string): RedisHealth {
  const server = readServer(info);
  return { version: server.version, faults: serverFaults(server) };
}

/** Sentences, one for each reason not to work with a server. */
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

function readServer(info: string): Omit<RedisServer, 'address'> {
  return {
    version: fieldOf(info, 'redis_version'),
    role: fieldOf(info, 'role'),
    evictionPolicy: fieldOf(info, 'maxmemory_policy'),
    isAppendOnly: fieldOf(info, 'aof_enabled') === '1',
  };
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
