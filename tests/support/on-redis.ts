import { Redis } from 'ioredis';

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
