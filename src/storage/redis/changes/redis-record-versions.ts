import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import {
  type CommittedVersion,
  MARK_KEPT_MS,
  type RecordVersion,
  type RepublishedVersions,
  type RetiredKey,
  type SharedVersions,
  VERSION_KEPT_MS,
} from '../../../limiter/record-versions.ts';
import { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { redisUnavailable, settled } from '../redis-failure.ts';
import { CHANGES_CHANNEL, customersKeyName, versionKeyName, windowKeyName } from '../redis-key-names.ts';

const STEPS = 4;
/** Keys whose calls are under way together: more would block the server and fill the replica's memory. */
const CHUNK_SIZE = 500;
/** Deleted keys whose windows are removed together: their names are in memory. */
const CLEARED_AT_ONCE = 10;
/** Keys of one call where all are on one server: no decision waits for more than these. */
const KEYS_OF_A_CALL = 100;

/**
 * Longest that the calls of a chunk may take: a change must not wait for a server that does not respond. Pauses of this process are left out.
 * Milliseconds.
 */
const CALL_TIMEOUT_MS = 1000;

/**
 * Longest that a change waits for cached rejections: as far ahead as the decision script notes them. A note may be further ahead after
 * the server's clock went back, but a replica measures that second by its own monotonic clock. Milliseconds.
 */
const LONGEST_REJECTION_MS = 1100;

/** The shared versions as Redis strings; changes are published on `tg:changes`. */
export class RedisRecordVersions implements SharedVersions, RepublishedVersions {
  readonly #redis: RedisConnection;
  readonly #markStale = new LuaScript(new URL('./markStale-n.lua', import.meta.url));
  readonly #publishVersion = new LuaScript(new URL('./publishVersion-n.lua', import.meta.url));
  readonly #retireKey = new LuaScript(new URL('./retireKey-1.lua', import.meta.url));
  readonly #publishNewer = new LuaScript(new URL('./publishNewer-1.lua', import.meta.url));
  readonly #withdrawVersion = new LuaScript(new URL('./withdrawVersion-1.lua', import.meta.url));

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async markStale(keyIds: readonly string[]): Promise<void> {
    const args = [String(MARK_KEPT_MS)];
    await inChunks(keyIds, (chunk) =>
      Promise.all(
        this.#callsFor(chunk).map((ids) =>
          this.#markStale.runWithKeys(this.#redis, ids.map(versionKeyName), args),
        ),
      ),
    );
  }

  async publishVersion(versions: readonly RecordVersion[]): Promise<void> {
    const replies = await inChunks(versions, async (chunk) => {
      await this.#publish(chunk.map(({ keyId }) => keyId));
      return Promise.all(this.#callsFor(chunk).map((part) => this.#setVersions(part)));
    });
    await outliveRejections(replies);
  }

  /** Resolves with the milliseconds until no replica repeats a rejection from before the change. */
  #setVersions(versions: readonly RecordVersion[]): Promise<unknown> {
    const names = versions.map(({ keyId }) => versionKeyName(keyId));
    const args = [String(VERSION_KEPT_MS), String(MARK_KEPT_MS), ...versions.map(({ version }) => version)];
    return this.#publishVersion.runWithKeys(this.#redis, names, args);
  }

  /** The parts of a chunk that one call each can take: in a cluster every key may be on another server. */
  #callsFor<Item>(chunk: readonly Item[]): (readonly Item[])[] {
    return partsOf(chunk, this.#redis instanceof Cluster ? 1 : KEYS_OF_A_CALL);
  }

  async retire(keys: readonly RetiredKey[]): Promise<void> {
    const replies = await inChunks(keys, async (chunk) => {
      await this.#publish(chunk.map(({ keyId }) => keyId));
      const kept = String(VERSION_KEPT_MS);
      return Promise.all(
        chunk.map(({ keyId }) => this.#retireKey.run(this.#redis, [versionKeyName(keyId), kept])),
      );
    });
    for (const part of partsOf(keys, CLEARED_AT_ONCE))
      await Promise.all(part.map((key) => this.#removeWindows(key)));
    await outliveRejections(replies);
  }

  /**
   * Removes the named windows of the key and all windows of its customers, which may be thousands. Called after the tombstone is
   * written, so that nothing opens them again.
   */
  async #removeWindows({ keyId, windowNames = [] }: RetiredKey): Promise<void> {
    try {
      const names = [...windowNames, ...(await this.#redis.zrange(customersKeyName(keyId), '0', '-1'))];
      for (const part of partsOf(names, CHUNK_SIZE)) {
        await this.#redis.unlink(part.map((name) => windowKeyName(keyId, name)));
      }
      await this.#redis.unlink(customersKeyName(keyId));
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async withdraw({ keyId, version }: RecordVersion): Promise<void> {
    await inTime(this.#publish([keyId]));
    await inTime(this.#withdrawVersion.run(this.#redis, [versionKeyName(keyId), version]));
  }

  async publishNewer(committed: readonly CommittedVersion[]): Promise<ReadonlySet<string>> {
    const unsettled = new Set(committed.map(({ keyId }) => keyId));
    // One call for each: a key that can't be written keeps no other from it.
    const publish = async ({ keyId, version }: CommittedVersion) => {
      const keyAndArguments = [versionKeyName(keyId), version ?? '-', String(VERSION_KEPT_MS)];
      await this.#publishNewer.run(this.#redis, keyAndArguments).then(() => unsettled.delete(keyId), ignore);
    };
    await inChunks(committed, (chunk) => Promise.all(chunk.map(publish))).catch(ignore);
    return unsettled;
  }

  /**
   * Called before the version is written, while the mark makes every copy stale. When the reply to that write arrives, the server has sent
   * the message to all subscribers, so none repeats an old rejection after the change is acknowledged. If the message were sent last, a
   * server that stops before it has reached all subscribers would leave some with old rejections for a moment.
   */
  #publish(keyIds: readonly string[]): Promise<unknown> {
    return settled(this.#redis.publish(CHANGES_CHANNEL, keyIds.join(' ')));
  }
}

function ignore(): void {}

/** Rejects with `StoreUnavailable` if the reply has not come in time. The call may be executed all the same. */
async function inTime<Reply>(reply: Promise<Reply>): Promise<Reply> {
  const timeout = new AbortController();
  const silence = async (): Promise<never> => {
    // After a pause of this process a timer may be first, although the reply has come: so it is waited for in steps.
    for (let step = 0; step < STEPS; step += 1)
      await pause(CALL_TIMEOUT_MS / STEPS, undefined, { signal: timeout.signal });
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

/** Makes the calls for one chunk after the other. Those of a chunk are written together and take one round trip. */
async function inChunks<Item>(
  items: readonly Item[],
  call: (chunk: readonly Item[]) => Promise<readonly unknown[]>,
): Promise<readonly unknown[]> {
  const replies: unknown[] = [];
  for (const chunk of partsOf(items, CHUNK_SIZE)) {
    replies.push(...(await inTime(call(chunk))));
  }
  return replies;
}

/** The items in parts of at most `size`. */
export function partsOf<Item>(items: readonly Item[], size: number): (readonly Item[])[] {
  const parts: (readonly Item[])[] = [];
  for (let start = 0; start < items.length; start += size) parts.push(items.slice(start, start + size));
  return parts;
}

/**
 * Waits until no replica repeats a rejection from before the change. The message makes replicas forget it, but a replica whose
 * subscription is slow or broken has not got it. There is no wait for a key that was not limited within the last second.
 */
export async function outliveRejections(repliesMs: readonly unknown[]): Promise<void> {
  let longestMs = 0;
  for (const reply of repliesMs) longestMs = Math.max(longestMs, Number(reply));
  if (longestMs > 0) await pause(Math.min(longestMs, LONGEST_REJECTION_MS));
}
