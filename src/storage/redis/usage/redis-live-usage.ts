import { Cluster } from 'ioredis';
import { StoreUnavailable } from '../../../errors.ts';
import type { Clock } from '../../../platform/clock.ts';
import { systemRandom } from '../../../platform/random.ts';
import type { LiveUsage, UsageBatch, UsageWrite, WriteOutcome } from '../../../usage/live-usage.ts';
import { SHARD_LEASE_MS } from '../../../usage/shard-lease.ts';
import { SHARDS, shardOf } from '../../../usage/shards.ts';
import { STORED_CAPS } from '../../../usage/slice-table.ts';
import { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { isUnreadable, redisUnavailable, settled } from '../redis-failure.ts';
import { RedisDataSets } from './redis-data-sets.ts';
import {
  liveUsageKeyName,
  usageBatchKeyName,
  usageLeaseKeyName,
  usageSourcesKeyName,
  usageWritersKeyName,
} from './usage-key-names.ts';
import { compactTexts, slicesOfTexts, textOf } from './usage-text.ts';

/** Elements of a batch that are read at a time: Redis does nothing else meanwhile. */
const ELEMENTS_AT_ONCE = 256;
/** How many characters this replica appends to a shard's live counts before it compacts them, at least. */
const COMPACT_AFTER = 1_000_000;
/** Most characters of usage in one call; a larger write has its own call. */
const CHARACTERS_AT_ONCE = 500_000;
/** A `previous` that no writer has: the script then only replies whether it has the write, and adds nothing. */
const NEVER = -1;

/** A write on its way. */
interface SentWrite {
  readonly write: UsageWrite;
  /** The data set that it goes to. */
  readonly source: string;
  readonly text: string;
}

/** Live usage in Redis, on one server or a cluster: every call has Redis keys of one hash slot only. */
export class RedisLiveUsage implements LiveUsage {
  readonly isShared = true;
  readonly #redis: RedisConnection;
  readonly #dataSets: RedisDataSets;
  /** Writes without a reply, and the data set that they went to. */
  readonly #attempts = new WeakMap<UsageWrite, string>();
  /** Characters appended since the shard was last compacted or taken, by shard. */
  readonly #appended = new Map<number, number>();
  /** Characters of the text to which this replica last compacted a shard, by shard. */
  readonly #compacted = new Map<number, number>();
  /** By which this replica's locks on shards differ from those of others. */
  readonly #flusher = systemRandom.bytes(12).toString('base64url');
  readonly #takeLease = new LuaScript(new URL('./takeUsageLease-1.lua', import.meta.url));
  readonly #renew = new LuaScript(new URL('./renewUsageLease-1.lua', import.meta.url));
  readonly #record = new LuaScript(new URL('./recordUsage-n.lua', import.meta.url));
  readonly #take = new LuaScript(new URL('./takeUsage-4.lua', import.meta.url));
  readonly #compact = new LuaScript(new URL('./compactUsage-1.lua', import.meta.url));
  readonly #read = new LuaScript(new URL('./readUsage-2.lua', import.meta.url));
  readonly #drop = new LuaScript(new URL('./dropUsage-1.lua', import.meta.url));

  constructor(redis: RedisConnection, clock: Clock) {
    this.#redis = redis;
    this.#dataSets = new RedisDataSets(redis, clock);
  }

  async write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]> {
    const sources = await this.#dataSets.namesOf(writes.map(({ shard }) => shard));
    const sent = writes.flatMap((write, index): SentWrite[] => {
      const source = sources[index];
      return source === undefined ? [] : [{ write, source, text: textOf(write.recorded) }];
    });
    const outcomes = new Map<UsageWrite, WriteOutcome>();
    await Promise.all(this.#callsOf(sent).map((call) => this.#callRecord(call, outcomes)));
    for (const { write, source } of sent) {
      const outcome = outcomes.get(write);
      const isKnown = outcome === 'written' || outcome === 'forgotten';
      if (!isKnown && !this.#attempts.has(write)) this.#attempts.set(write, source);
    }
    await this.#compactLong(sent);
    return writes.map((write) => outcomes.get(write) ?? 'unknown');
  }

  async take(shard: number): Promise<readonly UsageBatch[] | undefined> {
    try {
      return await this.#takeShard(shard);
    } catch (error) {
      // Not as if Redis were unavailable: the other shards can be taken.
      throw error instanceof StoreUnavailable && isUnreadable(error) ? error.cause : error;
    }
  }

  async #takeShard(shard: number): Promise<readonly UsageBatch[] | undefined> {
    if (!(await this.#lease(shard))) return undefined;
    await this.#dataSets.refresh(shard);
    const batches: UsageBatch[] = [];
    for (const source of await this.#sourcesOf(shard)) {
      const keyNames = [liveUsageKeyName(shard, source), usageBatchKeyName(shard, source)];
      const call = [...keyNames, usageWritersKeyName(shard), usageSourcesKeyName(shard), source];
      if (Number(await this.#take.run(this.#redis, call)) > 0)
        batches.push(...(await this.#readBatch(shard, source)));
    }
    this.#appended.delete(shard);
    this.#compacted.delete(shard);
    return batches;
  }

  async drop(batch: UsageBatch): Promise<void> {
    await this.#drop.run(this.#redis, [usageBatchKeyName(batch.shard, batch.source), String(batch.id)]);
  }

  async renew(shard: number): Promise<boolean> {
    const call = [usageLeaseKeyName(shard), this.#flusher, String(SHARD_LEASE_MS)];
    return Number(await this.#renew.run(this.#redis, call)) === 1;
  }

  async release(shard: number, afterMs: number): Promise<void> {
    await settled(this.#redis.pexpire(usageLeaseKeyName(shard), afterMs));
  }

  async compact(shard: number): Promise<void> {
    for (const source of await this.#sourcesOf(shard)) {
      const keyName = liveUsageKeyName(shard, source);
      const [head, ...texts] = await settled(this.#redis.lrange(keyName, 0, -1));
      if (head === undefined || texts.length < 2) continue;
      const text = await compactTexts(texts, STORED_CAPS);
      await this.#compact.run(this.#redis, [keyName, head, String(texts.length), text]);
      this.#compacted.set(shard, text.length);
    }
    this.#appended.delete(shard);
  }

  async read(keyIds: readonly string[]): Promise<readonly UsageBatch[]> {
    const byShard = [...Map.groupBy(keyIds, shardOf)];
    const batches = await Promise.all(byShard.map(([shard, ids]) => this.#readShard(shard, ids)));
    return batches.flat();
  }

  async oldestAtMs(): Promise<number | undefined> {
    const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
    const ids = await Promise.all(shards.map((shard) => this.#idsOf(shard)));
    const oldest = Math.min(...ids.flat());
    return Number.isFinite(oldest) ? oldest / 1000 : undefined;
  }

  /** The writes, grouped by call: on a cluster each has its own call, because their Redis keys lie in different slots. */
  #callsOf(sent: readonly SentWrite[]): readonly (readonly SentWrite[])[] {
    if (this.#redis instanceof Cluster) return sent.map((one) => [one]);
    const calls: SentWrite[][] = [];
    let characters = Number.POSITIVE_INFINITY;
    for (const one of sent) {
      characters += one.text.length;
      if (characters > CHARACTERS_AT_ONCE) {
        calls.push([]);
        characters = one.text.length;
      }
      calls.at(-1)?.push(one);
    }
    return calls;
  }

  /** Adds the outcome of each write to `outcomes`. */
  async #callRecord(call: readonly SentWrite[], outcomes: Map<UsageWrite, WriteOutcome>): Promise<void> {
    const keyNames = call.flatMap(({ write: { shard }, source }) => [
      liveUsageKeyName(shard, source),
      usageWritersKeyName(shard),
      usageSourcesKeyName(shard),
    ]);
    const args = call.flatMap(({ write, source, text }) => {
      const previous = this.#canTell(write, source) ? write.previous : NEVER;
      return [write.writer, String(write.sequence), String(previous ?? ''), source, text];
    });
    try {
      const reply = await this.#record.runWithKeys(this.#redis, keyNames, args);
      for (const [index, { write }] of call.entries()) {
        if (Array.isArray(reply)) outcomes.set(write, outcomeOf(reply[index]));
      }
    } catch (error) {
      // The script ends at the first entry that it can't read. Those before it are written, and are not written twice.
      if (call.length > 1 && isUnreadable(error))
        await Promise.all(call.map((one) => this.#callRecord([one], outcomes)));
      else for (const { write } of call) outcomes.set(write, redisUnavailable(error));
    }
  }

  /** Compacts shards that have grown: clients that invent names must not fill Redis before the next move to Postgres. */
  async #compactLong(sent: readonly SentWrite[]): Promise<void> {
    for (const { write, text } of sent) {
      const { shard } = write;
      const all = (this.#appended.get(shard) ?? 0) + text.length;
      this.#appended.set(shard, all);
      // Waits until the text has doubled, so that each character is compacted only a few times. After a failure, the next write retries.
      if (all > Math.max(COMPACT_AFTER, this.#compacted.get(shard) ?? 0))
        await this.compact(shard).catch(() => {});
    }
  }

  /**
   * Whether Redis can tell if an earlier attempt of the write was carried out. It can in the same data set, if the writer has an
   * acknowledged write to compare with.
   */
  #canTell(write: UsageWrite, source: string): boolean {
    const attempted = this.#attempts.get(write);
    return attempted === undefined || (attempted === source && write.previous !== 0);
  }

  async #lease(shard: number): Promise<boolean> {
    const call = [usageLeaseKeyName(shard), this.#flusher, String(SHARD_LEASE_MS)];
    return (await this.#takeLease.run(this.#redis, call)) === 'OK';
  }

  #sourcesOf(shard: number): Promise<string[]> {
    return settled(this.#redis.smembers(usageSourcesKeyName(shard)));
  }

  /**
   * Reads the whole waiting batch. If this process was paused for longer than its lease, another flusher may have moved that batch, and
   * the next one, which may be longer, takes its place. A mixture of both has the id of the moved batch, so it is not applied.
   */
  async #readBatch(shard: number, source: string): Promise<readonly UsageBatch[]> {
    const keyName = usageBatchKeyName(shard, source);
    const elements: string[] = [];
    let read: readonly string[];
    do {
      const start = elements.length;
      read = await settled(this.#redis.lrange(keyName, start, start + ELEMENTS_AT_ONCE - 1));
      elements.push(...read);
    } while (read.length === ELEMENTS_AT_ONCE);
    return elements.length === 0 ? [] : [batchOf(shard, source, elements)];
  }

  async #readShard(shard: number, keyIds: readonly string[]): Promise<readonly UsageBatch[]> {
    const pending: UsageBatch[] = [];
    for (const source of await this.#sourcesOf(shard)) {
      const keyNames = [liveUsageKeyName(shard, source), usageBatchKeyName(shard, source)];
      const reply = await this.#read.run(this.#redis, [...keyNames, ...keyIds]);
      for (const elements of Array.isArray(reply) ? reply : []) {
        if (Array.isArray(elements) && elements.length > 1)
          pending.push(batchOf(shard, source, elements.map(String)));
      }
    }
    return pending;
  }

  async #idsOf(shard: number): Promise<readonly number[]> {
    const ids: number[] = [];
    for (const source of await this.#sourcesOf(shard)) {
      // The live counts first: a flusher may turn them into the batch between the two reads, and must not hide them from both.
      for (const keyName of [liveUsageKeyName(shard, source), usageBatchKeyName(shard, source)]) {
        const head = await settled(this.#redis.lindex(keyName, 0));
        if (head !== null) ids.push(Number.parseInt(head, 10));
      }
    }
    return ids;
  }
}

function outcomeOf(reply: unknown): WriteOutcome {
  if (reply === 1) return 'written';
  return reply === 0 ? 'forgotten' : 'unknown';
}

function batchOf(shard: number, source: string, [head = '0', ...texts]: readonly string[]): UsageBatch {
  const last = texts.at(-1);
  const writers = last?.startsWith('w') ? last : undefined;
  return {
    shard,
    source,
    id: Number.parseInt(head, 10),
    slices: slicesOfTexts(writers === undefined ? texts : texts.slice(0, -1)),
    writers: writersOf(writers ?? 'w'),
  };
}

function writersOf(text: string): ReadonlyMap<string, number> {
  const lines = text
    .slice(1)
    .split('\n')
    .map((line) => line.split(' '));
  return new Map(
    lines.flatMap(([writer = '', sequence]) => {
      const last = Number(sequence);
      return writer !== '' && Number.isSafeInteger(last) ? [[writer, last]] : [];
    }),
  );
}
