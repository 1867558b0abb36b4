import { setTimeout as pause } from 'node:timers/promises';
import {
  type CommittedVersion,
  MARK_KEPT_MS,
  type RecordVersion,
  type RepublishedVersions,
  type SharedVersions,
  VERSION_KEPT_MS,
} from '../../../limiter/record-versions.ts';
import { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { redisUnavailable } from '../redis-failure.ts';
import { CHANGES_CHANNEL, customersKeyName, versionKeyName, windowKeyName } from '../redis-key-names.ts';

const STEPS = 4;
/** Calls that are under way together: more would block the server and fill the replica's memory. */
const CHUNK_SIZE = 500;

/**
 * Longest that the calls of a chunk may take: a change must not wait for a server that does not respond. Pauses of this process are left out.
 * Milliseconds.
 */
const CALL_TIMEOUT_MS = 1000;

/** The shared versions as Redis strings; changes are published on `tg:changes`. */
export class RedisRecordVersions implements SharedVersions, RepublishedVersions {
  readonly #redis: RedisConnection;
  readonly #markStale = new LuaScript(new URL('./markStale-1.lua', import.meta.url));
  readonly #publishVersion = new LuaScript(new URL('./publishVersion-1.lua', import.meta.url));
  readonly #retireKey = new LuaScript(new URL('./retireKey-1.lua', import.meta.url));
  readonly #publishNewer = new LuaScript(new URL('./publishNewer-1.lua', import.meta.url));
  readonly #withdrawVersion = new LuaScript(new URL('./withdrawVersion-1.lua', import.meta.url));

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async markStale(keyIds: readonly string[]): Promise<void> {
    await inChunks(keyIds, (keyId) =>
      this.#markStale.run(this.#redis, [versionKeyName(keyId), String(MARK_KEPT_MS)]),
    );
  }

  async publishVersion(versions: readonly RecordVersion[]): Promise<void> {
    await outliveRejections(
      await inChunks(versions, async ({ keyId, version }) => {
        await this.#publish(keyId);
        const keyAndArguments = [
          versionKeyName(keyId),
          version,
          String(VERSION_KEPT_MS),
          String(MARK_KEPT_MS),
        ];
        return this.#publishVersion.run(this.#redis, keyAndArguments);
      }),
    );
  }

  async retire(keyId: string, windowNames: readonly string[] = []): Promise<void> {
    await within(CALL_TIMEOUT_MS, this.#publish(keyId));
    const leftMs = await this.#run(this.#retireKey, [versionKeyName(keyId), String(VERSION_KEPT_MS)]);
    await this.#removeWindows(keyId, windowNames);
    await outliveRejections([leftMs]);
  }

  /**
   * Removes the named windows of the key and all windows of its customers, which may be thousands. Called after the tombstone is
   * written, so that nothing opens them again.
   */
  async #removeWindows(keyId: string, ofKey: readonly string[]): Promise<void> {
    try {
      const names = [...ofKey, ...(await this.#redis.zrange(customersKeyName(keyId), '0', '-1'))];
      for (let start = 0; start < names.length; start += CHUNK_SIZE) {
        await this.#redis.unlink(
          names.slice(start, start + CHUNK_SIZE).map((name) => windowKeyName(keyId, name)),
        );
      }
      await this.#redis.unlink(customersKeyName(keyId));
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async withdraw({ keyId, version }: RecordVersion): Promise<void> {
    await within(CALL_TIMEOUT_MS, this.#publish(keyId));
    await this.#run(this.#withdrawVersion, [versionKeyName(keyId), version]);
  }

  async publishNewer(committed: readonly CommittedVersion[]): Promise<ReadonlySet<string>> {
    const unsettled = new Set(committed.map(({ keyId }) => keyId));
    const published = inChunks(committed, async ({ keyId, version }) => {
      const keyAndArguments = [versionKeyName(keyId), version ?? '-', String(VERSION_KEPT_MS)];
      // The other keys may be on another server.
      await this.#publishNewer.run(this.#redis, keyAndArguments).then(() => unsettled.delete(keyId), ignore);
    });
    await published.catch(ignore);
    return unsettled;
  }

  #run(script: LuaScript, keyAndArguments: string[]): Promise<unknown> {
    return within(CALL_TIMEOUT_MS, script.run(this.#redis, keyAndArguments));
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

function ignore(): void {}

/** Rejects with `StoreUnavailable` if the reply has not come in time. The call may be executed all the same. */
async function within<Reply>(timeoutMs: number, reply: Promise<Reply>): Promise<Reply> {
  const timeout = new AbortController();
  const silence = async (): Promise<never> => {
    // After a pause of this process a timer may be first, although the reply has come: so it is waited for in steps.
    for (let step = 0; step < STEPS; step += 1)
      await pause(timeoutMs / STEPS, undefined, { signal: timeout.signal });
    throw redisUnavailable(new Error('no reply in time'));
  };
  const silent = silence();
  silent.catch(() => {});
  try {
    return await Promise.race([reply, silent]);
  } finally {
    timeout.abort();
  }
}

/** Client-side pipelining: the calls of a chunk are written one after the other and take one round trip. */
async function inChunks<Item>(
  items: readonly Item[],
  call: (item: Item) => Promise<unknown>,
): Promise<readonly unknown[]> {
  const replies: unknown[] = [];
  for (let start = 0; start < items.length; start += CHUNK_SIZE) {
    const chunk = Promise.all(items.slice(start, start + CHUNK_SIZE).map(call));
    replies.push(...(await within(CALL_TIMEOUT_MS, chunk)));
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
