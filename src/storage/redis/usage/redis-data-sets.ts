import { Cluster, type Redis } from 'ioredis';
import type { Clock } from '../../../platform/clock.ts';
import { SHARDS } from '../../../usage/shards.ts';
import { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { redisUnavailable } from '../redis-failure.ts';
import { usageSourcesKeyName } from './usage-key-names.ts';

/** How long a reply is trusted: a server may change its role while its connections stay open. */
const RECENT_MS = 250;

/**
 * Knows the data set of each shard. It is read again after a connection was lost, because the next one may lead to another server, or
 * to the same one restarted from older files. The flusher also reads it again for each shard, because a server may change its role
 * while its connections stay open.
 */
export class RedisDataSets {
  readonly #redis: RedisConnection;
  readonly #identify = new LuaScript(new URL('./identifyServer-1.lua', import.meta.url));
  readonly #names = new Map<number, string>();
  readonly #clock: Clock;
  /** When the names were read last, by the monotonic clock. */
  #learnedAtMs = Number.NEGATIVE_INFINITY;
  /** Grows when the names may be outdated: names that were requested before are then dropped. */
  #connections = 0;

  constructor(redis: RedisConnection, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
    redis.on('close', this.#forget);
    if (!(redis instanceof Cluster)) return;
    redis.on('+node', this.#watch);
    redis.on('-node', this.#forget);
    for (const node of redis.nodes()) this.#watch(node);
  }

  /** The names for these shards, in the same order. Unknown ones are read; undefined if there is no reply. Never rejects. */
  async namesOf(shards: readonly number[]): Promise<readonly (string | undefined)[]> {
    const unknown = shards.filter((shard) => !this.#names.has(shard));
    if (unknown.length > 0) await this.#learn(unknown);
    return shards.map((shard) => this.#names.get(shard));
  }

  /**
   * Reads the name of a shard's data set. Rejects with `StoreUnavailable`. Without a cluster, the name is not read again for a moment:
   * one reply holds for all shards, and costs the server as much as several other calls.
   */
  async refresh(shard: number): Promise<void> {
    const isRecent = this.#clock.monotonicMs() - this.#learnedAtMs < RECENT_MS;
    if (!isRecent || !this.#names.has(shard) || this.#redis instanceof Cluster) await this.#learn([shard]);
    if (!this.#names.has(shard)) throw redisUnavailable(new Error('The server did not say which it is'));
  }

  async #learn(shards: readonly number[]): Promise<void> {
    const connections = this.#connections;
    // One server holds all shards, unless it is a cluster.
    const chosen = this.#redis instanceof Cluster ? shards : shards.slice(0, 1);
    const replies = await Promise.allSettled(
      chosen.map((shard) => this.#identify.run(this.#redis, [usageSourcesKeyName(shard)])),
    );
    if (connections !== this.#connections) return;
    this.#learnedAtMs = this.#clock.monotonicMs();
    const learned =
      this.#redis instanceof Cluster ? shards : Array.from({ length: SHARDS }, (_, shard) => shard);
    for (const [index, shard] of learned.entries()) {
      const reply = replies[this.#redis instanceof Cluster ? index : 0];
      if (reply?.status === 'fulfilled') this.#names.set(shard, String(reply.value));
    }
  }

  readonly #forget = (): void => {
    this.#connections += 1;
    this.#names.clear();
  };

  readonly #watch = (node: Redis): void => {
    this.#forget();
    node.on('close', this.#forget);
  };
}
