import type { Clock } from '../../platform/clock.ts';
import type {
  ClaimOutcome,
  LiveUsage,
  UsageBatch,
  UsageClaim,
  UsageWrite,
  WriteOutcome,
} from '../../usage/live-usage.ts';
import { MAX_CUSTOMERS, MAX_ENDPOINTS } from '../../usage/usage-names.ts';
import { callScript, type ScriptReply } from './call-scripts.ts';
import type { RedisConnection } from './connection.ts';
import { versionKey } from './key-names.ts';
import { LuaScript } from './lua-script.ts';
import { redisUnavailable } from './redis-failure.ts';
import { batchOfFields, fieldsOfSums } from './usage-fields.ts';
import { liveUsageKey, usageBatchKey, usageWritesKey } from './usage-key-names.ts';
import { UsageMarks } from './usage-marks.ts';

/** As long as the tombstone that a deleted key's version leaves. */
const TOMBSTONE_MS = '3600000';
/** A write this long after its mark might be found by nobody: the key is marked again. Half of the time that a mark lasts at least. */
const MARK_HOLDS_MS = 2500;

/** What the live usage in Redis needs. */
export interface RedisLiveUsageOptions {
  readonly redis: RedisConnection;
  readonly clock: Clock;
  /** Milliseconds between a key's first write and the moment that a flusher looks at it. */
  readonly flushDelayMs: number;
}

/** Live usage in Redis, on one server or a cluster: every call has the keys of one hash slot only. */
export class RedisLiveUsage implements LiveUsage {
  readonly isShared = true;
  readonly #redis: RedisConnection;
  readonly #clock: Clock;
  readonly #marks: UsageMarks;
  readonly #record = new LuaScript('recordUsage-4');
  readonly #take = new LuaScript('takeUsageBatch-2');
  readonly #drop = new LuaScript('dropUsageBatch-1');
  readonly #renumber = new LuaScript('renumberUsageBatch-3');
  readonly #read = new LuaScript('readUsage-2');
  readonly #erase = new LuaScript('eraseUsage-4');

  constructor({ redis, clock, flushDelayMs }: RedisLiveUsageOptions) {
    this.#redis = redis;
    this.#clock = clock;
    this.#marks = new UsageMarks(redis, flushDelayMs);
  }

  async write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]> {
    // First the marks, then the counts: a crash in between leaves a mark without counts, never counts that nobody looks for.
    const markedAtMs = this.#clock.monotonicMs();
    const keyIds = writes.map((write) => write.keyId);
    if (!(await this.#marks.mark(keyIds))) return writes.map(() => 'unknown');
    const replies = await callScript(this.#redis, this.#record, writes.map(recordCall));
    const tookMs = this.#clock.monotonicMs() - markedAtMs;
    if (tookMs > MARK_HOLDS_MS && !(await this.#marks.mark(keyIds))) return writes.map(() => 'unknown');
    return replies.map(outcomeOf);
  }

  claim(limit: number): Promise<readonly UsageClaim[]> {
    return this.#marks.claim(limit);
  }

  async takeBatches(keyIds: readonly string[]): Promise<readonly (UsageBatch | undefined)[]> {
    const calls = keyIds.map((keyId) => [liveUsageKey(keyId), usageBatchKey(keyId)]);
    const replies = await callScript(this.#redis, this.#take, calls);
    return keyIds.map((keyId, index) => batchOfFields(keyId, fieldsOf(replyOf(replies[index]))));
  }

  async dropBatches(batches: readonly UsageBatch[]): Promise<void> {
    const calls = batches.map((batch) => [usageBatchKey(batch.keyId), String(batch.id)]);
    (await callScript(this.#redis, this.#drop, calls)).map(replyOf);
  }

  async renumber({ keyId, id }: UsageBatch, aboveId: number): Promise<void> {
    const keys = [liveUsageKey(keyId), usageBatchKey(keyId), usageWritesKey(keyId)];
    await this.#renumber.run(this.#redis, [...keys, String(id), String(aboveId)]);
  }

  settle(outcomes: readonly (readonly [UsageClaim, ClaimOutcome])[]): Promise<void> {
    return this.#marks.settle(outcomes);
  }

  async read(keyId: string): Promise<readonly UsageBatch[]> {
    const reply = await this.#read.run(this.#redis, [liveUsageKey(keyId), usageBatchKey(keyId)]);
    const hashes = Array.isArray(reply) ? reply : [];
    return hashes.flatMap((hash) => batchOfFields(keyId, fieldsOf(hash)) ?? []);
  }

  async erase(keyId: string): Promise<void> {
    const keys = [...countKeys(keyId), versionKey(keyId)];
    await this.#erase.run(this.#redis, [...keys, TOMBSTONE_MS]);
  }
}

function recordCall({ keyId, writer, sequence, sums }: UsageWrite): string[] {
  return [
    ...countKeys(keyId),
    versionKey(keyId),
    writer,
    String(sequence),
    String(MAX_ENDPOINTS),
    String(MAX_CUSTOMERS),
    ...fieldsOfSums(sums),
  ];
}

function countKeys(keyId: string): string[] {
  return [liveUsageKey(keyId), usageBatchKey(keyId), usageWritesKey(keyId)];
}

function outcomeOf(reply: ScriptReply): WriteOutcome {
  if ('error' in reply) return 'unknown';
  return reply.reply === 1 ? 'written' : 'dropped';
}

function replyOf(reply: ScriptReply | undefined): unknown {
  if (reply === undefined || 'error' in reply) throw redisUnavailable(reply?.error);
  return reply.reply;
}

function fieldsOf(reply: unknown): readonly string[] {
  return Array.isArray(reply) ? reply.map(String) : [];
}
