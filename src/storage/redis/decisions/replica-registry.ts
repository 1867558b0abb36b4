import type { Clock } from '../../../platform/clock.ts';
import { type Outage, OutageHistory } from '../../../platform/outage-history.ts';
import { parsedJson } from '../../../platform/text/parsed-json.ts';
import { LAST_INSTANT_MS } from '../../../platform/timestamps.ts';
import { LuaScript } from '../lua-script.ts';
import type { RedisConnection } from '../redis-connection.ts';
import { redisUnavailable } from '../redis-failure.ts';
import { REPLICAS_KEY_NAME, replicaKeyName } from '../redis-key-names.ts';

const BEAT_INTERVAL_MS = 2000;
const SILENT_FOR_MS = 10_000;
/** Without a reply for this long, there is an outage: two intervals, and half a second for late heartbeats. */
const OUTAGE_AFTER_MS = 2 * BEAT_INTERVAL_MS + 500;

/** A replica that sent a heartbeat within ten seconds. */
export interface LiveReplica {
  readonly replicaId: string;
  /** By the server's clock. */
  readonly lastSeenAtMs: number;
  /** The description that the replica gave to `describeWith`; undefined if it has none. */
  readonly description: unknown;
}

/** Knows which replicas are live, so that each can compute its share while Redis is unavailable. */
export class ReplicaRegistry {
  readonly #redis: RedisConnection;
  readonly #replicaId: string;
  readonly #clock: Clock;
  readonly #countReplicas = new LuaScript(new URL('./countReplicas-1.lua', import.meta.url));
  readonly #outages: OutageHistory;
  #counted = 1;
  /** The count over the previous connection. Until then (monotonic clock) `liveReplicas` is not below it. */
  #before = { count: 1, until: 0 };
  #timer: NodeJS.Timeout | undefined;
  #describe: (() => object) | undefined;

  /** `replicaId` must be unique to this process. */
  constructor(redis: RedisConnection, replicaId: string, clock: Clock) {
    this.#redis = redis;
    this.#replicaId = replicaId;
    this.#clock = clock;
    this.#outages = new OutageHistory(clock, OUTAGE_AFTER_MS);
  }

  /** Times in which Redis did not respond to heartbeats, oldest first. Outages between two heartbeats may be missing. */
  get outages(): readonly Outage[] {
    return this.#outages.outages;
  }

  /**
   * Replicas that sent a heartbeat within ten seconds, this one included: at least 1. While Redis is unavailable, this is the last known
   * count. For ten seconds after a reconnect it is at least that count, because a Redis that is empty does not know all replicas yet.
   */
  get liveReplicas(): number {
    const { count, until } = this.#before;
    return this.#clock.monotonicMs() < until ? Math.max(count, this.#counted) : this.#counted;
  }

  get replicaId(): string {
    return this.#replicaId;
  }

  /** From now on, heartbeats contain a description of this replica: an object that can be written as JSON. */
  describeWith(describe: () => object): void {
    this.#describe = describe;
    void this.beat();
  }

  /** The replicas that were seen last, `limit` at most, and the number of all. Rejects with `StoreUnavailable`. */
  async list(limit: number): Promise<{ readonly replicas: readonly LiveReplica[]; readonly total: number }> {
    try {
      const [total, seen] = await Promise.all([
        this.#redis.zcard(REPLICAS_KEY_NAME),
        this.#redis.zrevrange(REPLICAS_KEY_NAME, 0, limit - 1, 'WITHSCORES'),
      ]);
      const ids = seen.filter((_, index) => index % 2 === 0);
      // Not with MGET: in a cluster the descriptions lie in different slots.
      const texts = await Promise.all(ids.map((id) => this.#redis.get(replicaKeyName(id))));
      const replicas = ids.map((replicaId, index) => ({
        replicaId,
        lastSeenAtMs: Number(seen[2 * index + 1]),
        description: parsedJson(texts[index] ?? ''),
      }));
      // Other scores are from no replica, and may be infinite; the next heartbeat removes them.
      return { replicas: replicas.filter(({ lastSeenAtMs }) => isInstant(lastSeenAtMs)), total };
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** Sends a heartbeat now and every two seconds, without keeping the process alive. */
  start(): void {
    if (this.#timer !== undefined) return;
    void this.beat();
    // Once a connection is up, the other replicas should know of this one at once, not with the next heartbeat.
    this.#redis.on('ready', this.#beatWhenReady);
    this.#timer = setInterval(() => void this.beat(), BEAT_INTERVAL_MS);
    this.#timer.unref();
  }

  /** Sends one heartbeat and counts the live replicas. Resolves with false when Redis did not respond. */
  async beat(): Promise<boolean> {
    const sentAt = this.#clock.monotonicMs();
    try {
      const count = await this.#countReplicas.run(this.#redis, [
        REPLICAS_KEY_NAME,
        this.#replicaId,
        String(SILENT_FOR_MS),
      ]);
      if (typeof count === 'number') this.#counted = Math.max(count, 1);
      if (this.#describe !== undefined) {
        const text = JSON.stringify(this.#describe());
        await this.#redis.set(replicaKeyName(this.#replicaId), text, 'PX', SILENT_FOR_MS);
      }
      this.#outages.noteResponse(sentAt);
      return true;
    } catch {
      // The connection logs its own failures; the last known count stays.
      this.#outages.noteFailure();
      return false;
    }
  }

  /** Takes this replica off the list, so that the others' shares grow at once. Best effort, never rejects. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#redis.off('ready', this.#beatWhenReady);
    try {
      await this.#redis.zrem(REPLICAS_KEY_NAME, this.#replicaId);
      await this.#redis.del(replicaKeyName(this.#replicaId));
    } catch {
      // It is forgotten ten seconds after its last heartbeat.
    }
  }

  readonly #beatWhenReady = (): void => {
    this.#before = { count: this.liveReplicas, until: this.#clock.monotonicMs() + SILENT_FOR_MS };
    void this.beat();
  };
}

function isInstant(ms: number): boolean {
  return ms >= 0 && ms <= LAST_INSTANT_MS;
}
