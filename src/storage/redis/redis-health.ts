import type { RedisConnection } from './connection.ts';
import { redisUnavailable } from './redis-failure.ts';

/** `version` is the server's own, or what it is compatible with. */
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

/** The verdict on the text that INFO responds. */
export function readHealth(info: string): RedisHealth {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
  const version = field('redis_version');
  const faults: string[] = [];
  if (!(Number.parseInt(version, 10) >= OLDEST_MAJOR)) {
    faults.push(
      `Redis ${version || 'of unknown version'} is too old: version ${OLDEST_MAJOR} or newer is needed`,
    );
  }
  const policy = field('maxmemory_policy');
  if (policy !== '' && policy !== 'noeviction') {
    faults.push(
      `Redis evicts keys (maxmemory-policy ${policy}), so counts can be lost: set it to noeviction`,
    );
  }
  return { version, faults };
}
