import type { Clock } from '../../../platform/clock.ts';
import { KEY_LAYOUT, shardOf, type UsageBatch } from '../../../usage/live-usage.ts';
import {
  addUnder,
  type Counts,
  emptySlice,
  HOURS_A_DAY,
  noCounts,
  type UsageSlice,
} from '../../../usage/usage-slice.ts';
import type { RedisConnection } from '../connection.ts';
import { redisUnavailable, settled } from '../redis-failure.ts';

/** Number of mark sets: sorted sets of the keys that have counts, by when they are due (milliseconds since 1970). */
const MARK_SETS = 16;
/** A write follows its mark within seconds: a mark that is older than this, of a key without counts, is removed. */
const MARK_HOLDS_MS = 60_000;

/**
 * Moves usage in the layout of version 0.1: a live hash and a batch for each key. What 0.1 left behind, or still writes during an
 * upgrade, becomes one batch per key, with the id that both versions compare with the key's last one in Postgres. To be removed
 * together with `usage_totals.last_batch` once upgrades from 0.1 are no longer supported.
 */
export class LegacyKeyLayout {
  readonly #clock: Clock;
  readonly #redis: RedisConnection;
  /** False once there are no marks, until the flusher finds some again. */
  #isInUse = true;

  constructor(redis: RedisConnection, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  /** The batches of a shard's keys. A key's live counts become its batch, unless one is waiting already. */
  async take(shard: number): Promise<readonly UsageBatch[]> {
    const marks = `tg:usage:marks:${shard % MARK_SETS}`;
    const marked = await settled(this.#redis.zrange(marks, '0', '-1', 'WITHSCORES'));
    if (shard === 0) this.#isInUse = marked.length > 0;
    else this.#isInUse ||= marked.length > 0;
    const batches: UsageBatch[] = [];
    for (let index = 0; index + 1 < marked.length; index += 2) {
      const keyId = marked[index] ?? '';
      if (shardOf(keyId) !== shard) continue;
      const batch = await this.#takeKey(keyId);
      if (batch !== undefined) batches.push(batch);
      else if (Number(marked[index + 1]) < this.#clock.nowMs() - MARK_HOLDS_MS) {
        await settled(this.#redis.zrem(marks, keyId));
      }
    }
    return batches;
  }

  async read(keyIds: readonly string[]): Promise<readonly UsageBatch[]> {
    if (!this.#isInUse) return [];
    const hashes = await Promise.all(keyIds.map((keyId) => this.#readKey(keyId)));
    return hashes.flat();
  }

  /** KEYS and ARGV of `dropUsage` for a batch of this layout; undefined for any other. */
  dropCall({ source, id, slices }: UsageBatch): string[] | undefined {
    const keyId = slices[0]?.keyId ?? '';
    return source === KEY_LAYOUT ? [batchKey(keyId), String(id), 'HGET', 'id'] : undefined;
  }

  async #takeKey(keyId: string): Promise<UsageBatch | undefined> {
    try {
      await this.#redis.renamenx(liveKey(keyId), batchKey(keyId));
    } catch (error) {
      // There are no live counts, but a batch may be waiting.
      if (!(error instanceof Error && error.message.includes('no such key'))) throw redisUnavailable(error);
    }
    return batchOf(keyId, await settled(this.#redis.hgetall(batchKey(keyId))));
  }

  async #readKey(keyId: string): Promise<readonly UsageBatch[]> {
    const both = this.#redis.multi().hgetall(batchKey(keyId)).hgetall(liveKey(keyId));
    const replies = (await settled(both.exec())) ?? [];
    return replies.flatMap(([error, hash]) => {
      if (error !== null) throw redisUnavailable(error);
      return batchOf(keyId, hash as Record<string, string>) ?? [];
    });
  }
}

function liveKey(keyId: string): string {
  return `tg:{${keyId}}:usage:live`;
}

function batchKey(keyId: string): string {
  return `tg:{${keyId}}:usage:batch`;
}

/**
 * Fields are "id", "h<hour>", "e<endpoint>", "c<customer>" and totals; values "<requests> <successful> <forwarded> <microseconds>".
 * Endpoints and customers have no day here: they get the day of the last hour. The plan is read from the key in Postgres.
 */
function batchOf(keyId: string, fields: Readonly<Record<string, string>>): UsageBatch | undefined {
  if (fields.id === undefined) return undefined;
  const hours = Object.keys(fields).filter((field) => field.startsWith('h'));
  const lastHour = Math.max(...hours.map((field) => Number(field.slice(1))));
  const lastDay = Math.floor(lastHour / HOURS_A_DAY);
  const slice = emptySlice(keyId, lastDay, '');
  slice.lastUsedAtS = lastHour * 3600;
  for (const [field, value] of Object.entries(fields)) addField(slice, field, countsOf(value));
  return {
    shard: shardOf(keyId),
    source: KEY_LAYOUT,
    id: Number(fields.id),
    slices: [slice],
    writers: new Map(),
  };
}

function addField(slice: UsageSlice, field: string, counts: Counts): void {
  const name = field.slice(1);
  if (field.startsWith('h')) addUnder(slice.hours, Number(name), counts);
  if (field.startsWith('e')) addUnder(slice.endpoints, name, counts);
  if (field.startsWith('c')) addUnder(slice.customers, name, counts);
}

function countsOf(value: string): Counts {
  const [requests = 0, successful = 0, forwarded = 0, forwardedUs = 0] = value.split(' ').map(Number);
  return { ...noCounts(), requests, successful, forwarded, forwardedUs };
}
