import { Redis } from 'ioredis';
import type { BenchKey, RedisCountsOfKeys } from '../setup/candidate.ts';

/** What Redis counted since it started. */
export interface RedisCounts {
  /** Script calls: one for each decision. */
  readonly calls: number;
  /** All commands, those that scripts run included. */
  readonly commands: number;
}

/** Reads what Redis knows of the load. One connection, of the bench's own. */
export class RedisProbe {
  readonly #redis: Redis;

  constructor(port: number) {
    this.#redis = new Redis({ host: '127.0.0.1', port });
  }

  async counts(): Promise<RedisCounts> {
    const text = await this.#redis.info('commandstats');
    let calls = 0;
    let commands = 0;
    for (const [, command = '', count = '0'] of text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
      commands += Number(count);
      if (command === 'evalsha' || command === 'eval') calls += Number(count);
    }
    return { calls, commands };
  }

  /** Requests that the windows of these keys hold. */
  async allowed({ countKey, redisDatabase }: RedisCountsOfKeys, keys: readonly BenchKey[]): Promise<number> {
    await this.#redis.select(redisDatabase);
    let allowed = 0;
    for (let start = 0; start < keys.length; start += 1000) {
      const counts = await this.#redis.mget(keys.slice(start, start + 1000).map(({ id }) => countKey(id)));
      for (const count of counts) allowed += Number(count ?? 0);
    }
    return allowed;
  }

  close(): void {
    this.#redis.disconnect();
  }
}
