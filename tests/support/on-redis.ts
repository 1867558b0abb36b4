import { Redis } from 'ioredis';
import { until } from './until.ts';

/** Works on a Redis server, over a connection that ends with the work. */
export async function onRedis<Result>(url: string, work: (redis: Redis) => Promise<Result>): Promise<Result> {
  const redis = new Redis(url);
  // Where the server can't be reached, the command fails after 20 attempts, and says only that.
  redis.on('error', () => {});
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

/** Resolves once a server says of its replication what is looked for: by default that it has what its master has. */
export function untilReplicating(url: string, words = 'master_link_status:up'): Promise<void> {
  return onRedis(url, (redis) =>
    until(async () => (await redis.info('replication').catch(() => '')).includes(words)),
  );
}
