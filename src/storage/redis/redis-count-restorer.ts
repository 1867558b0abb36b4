import type { CountRestorer, UncountedRequests } from '../../limiter/count-restorer.ts';
import { windowEndMs } from '../../limiter/period.ts';
import type { RedisConnection } from './connection.ts';
import { periodKey, windowKey } from './key-names.ts';
import { LuaScript } from './lua-script.ts';
import { redisUnavailable } from './redis-failure.ts';

/** Adds to the windows in Redis. */
export class RedisCountRestorer implements CountRestorer {
  readonly #redis: RedisConnection;
  readonly #addCount = new LuaScript('addCount-2');

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async restore({ keyId, quota, count }: UncountedRequests): Promise<void> {
    const endsAtMs = windowEndMs(await this.#nowMs(), quota.period);
    await this.#addCount.run(this.#redis, [
      windowKey(keyId),
      periodKey(keyId),
      quota.period.token,
      String(count),
      String(endsAtMs),
    ]);
  }

  /** Redis's clock, as for every window. */
  async #nowMs(): Promise<number> {
    try {
      const [seconds, microseconds] = await this.#redis.time();
      return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}
