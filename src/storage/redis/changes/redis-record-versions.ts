import { setTimeout as pause } from 'node:timers/promises';
import {
  MARK_KEPT_MS,
  type RecordVersion,
  type RecordVersions,
  VERSION_KEPT_MS,
} from '../../../limiter/record-versions.ts';
import type { RedisConnection } from '../connection.ts';
import { CHANGES_CHANNEL, customersKey, versionKey, windowKey } from '../key-names.ts';
import { LuaScript } from '../lua-script.ts';
import { redisUnavailable } from '../redis-failure.ts';

/** Calls that are under way together: more would block the server and fill the replica's memory. */
const CHUNK_SIZE = 500;

/** The shared versions as Redis strings; changes are published on `tg:changes`. */
export class RedisRecordVersions implements RecordVersions {
  readonly #redis: RedisConnection;
  readonly #markStale = new LuaScript(new URL('./markStale-1.lua', import.meta.url));
  readonly #publishVersion = new LuaScript(new URL('./publishVersion-1.lua', import.meta.url));
  readonly #retireKey = new LuaScript(new URL('./retireKey-1.lua', import.meta.url));
  readonly #withdrawVersion = new LuaScript(new URL('./withdrawVersion-1.lua', import.meta.url));

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async markStale(keyIds: readonly string[]): Promise<void> {
    await inChunks(keyIds, (keyId) =>
      this.#markStale.run(this.#redis, [versionKey(keyId), String(MARK_KEPT_MS)]),
    );
  }

  async publishVersion(versions: readonly RecordVersion[]): Promise<void> {
    await outliveRejections(
      await inChunks(versions, async ({ keyId, version }) => {
        await this.#publish(keyId);
        const keyAndArguments = [versionKey(keyId), version, String(VERSION_KEPT_MS), String(MARK_KEPT_MS)];
        return this.#publishVersion.run(this.#redis, keyAndArguments);
      }),
    );
  }

  async retire(keyId: string, windowNames: readonly string[] = []): Promise<void> {
    await this.#publish(keyId);
    const leftMs = await this.#retireKey.run(this.#redis, [versionKey(keyId), String(VERSION_KEPT_MS)]);
    await this.#removeWindows(keyId, windowNames);
    await outliveRejections([leftMs]);
  }

  /**
   * Removes the named windows of the key and all windows of its customers, which may be thousands. Called after the tombstone is
   * written, so that nothing opens them again.
   */
  async #removeWindows(keyId: string, ofKey: readonly string[]): Promise<void> {
    try {
      const names = [...ofKey, ...(await this.#redis.zrange(customersKey(keyId), '0', '-1'))];
      for (let start = 0; start < names.length; start += CHUNK_SIZE) {
        await this.#redis.unlink(
          names.slice(start, start + CHUNK_SIZE).map((name) => windowKey(keyId, name)),
        );
      }
      await this.#redis.unlink(customersKey(keyId));
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async withdraw({ keyId, version }: RecordVersion): Promise<void> {
    await this.#publish(keyId);
    await this.#withdrawVersion.run(this.#redis, [versionKey(keyId), version]);
  }

  /**
   * Called before the version is written, while the mark makes every copy stale. When the reply to that write arrives, the server has sent
   * the message to all subscribers, so none repeats an old rejection after the change is acknowledged. If the message were sent last, a
   * server that stops before it has reached all subscribers would leave some with old rejections for a moment.
   */
  async #publish(keyId: string): Promise<void> {
    try {
      await this.#redis.publish(CHANGES_CHANNEL, keyId);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}

/** Client-side pipelining: the calls of a chunk are written one after the other and take one round trip. */
async function inChunks<Item>(
  items: readonly Item[],
  call: (item: Item) => Promise<unknown>,
): Promise<readonly unknown[]> {
  const replies: unknown[] = [];
  for (let start = 0; start < items.length; start += CHUNK_SIZE) {
    replies.push(...(await Promise.all(items.slice(start, start + CHUNK_SIZE).map(call))));
  }
  return replies;
}

/**
 * Waits until no replica repeats a rejection from before the change. The message makes replicas forget it, but a replica whose
 * subscription is slow or broken has not got it. There is no wait for a key that was not limited within the last second.
 */
export async function outliveRejections(repliesMs: readonly unknown[]): Promise<void> {
  let longestMs = 0;
  for (const reply of repliesMs) longestMs = Math.max(longestMs, Number(reply));
  if (longestMs > 0) await pause(longestMs);
}
