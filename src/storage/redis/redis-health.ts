import { Cluster, type Redis } from 'ioredis';
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
export async function describeServers(redis: RedisConnection): Promise<readonly RedisServer[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  try {
    return await Promise.all(
      nodes.map(async (node) => ({ address: addressOf(node), ...readServer(await node.info()) })),
    );
  } catch (error) {
    throw redisUnavailable(error);
  }
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
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
  return {
    version: field('redis_version'),
    role: field('role'),
    evictionPolicy: field('maxmemory_policy'),
    isAppendOnly: field('aof_enabled') === '1',
  };
}

/** With sentinels the options name no server: the socket has its address. */
function addressOf({ options, stream }: Redis): string {
  const { host, port } = options.sentinels
    ? { host: stream.remoteAddress, port: stream.remotePort }
    : options;
  return `${host?.includes(':') ? `[${host}]` : host}:${port}`;
}
