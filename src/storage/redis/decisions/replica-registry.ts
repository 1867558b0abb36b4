import type { Clock } from '../../../platform/clock.ts';
import { type Outage, OutageHistory } from '../../../platform/outage-history.ts';
import type { RedisConnection } from '../connection.ts';
import { REPLICAS_KEY, replicaKey } from '../key-names.ts';
import { LuaScript } from '../lua-script.ts';
import { redisUnavailable } from '../redis-failure.ts';

const BEAT_INTERVAL_MS = 2000;
const SILENT_FOR_MS = 10_000;
/** A heartbeat that is late by more than another one may be. */
const OUTAGE_AFTER_MS = 2 * BEAT_INTERVAL_MS + 500;

/** A replica that sent a heartbeat within ten seconds. */
export interface LiveReplica {
  readonly replicaId: string;
  /** By the server's clock. */
  readonly lastSeenAtMs: number;
  /** What it says of itself, as it was given to `describeWith`; undefined where it says nothing. */
  readonly description: unknown;
}

/** Which replicas live, so that each can compute its share while Redis is unavailable. */
export class ReplicaRegistry {
  readonly #redis: RedisConnection;
  readonly #replicaId: string;
  readonly #clock: Clock;
  readonly #countReplicas = new LuaScript(new URL('./countReplicas-1.lua', import.meta.url));
  readonly #outages: OutageHistory;
  #counted = 1;
  /** What was counted over the last connection; holds until then, by the monotonic clock. */
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

  /** When Redis did not respond to heartbeats, oldest first; shorter times than between two of them may be missing. */
  get outages(): readonly Outage[] {
    return this.#outages.outages;
  }

  /**
   * Replicas that sent a heartbeat within ten seconds, this one included: at least 1. While Redis is unavailable the last count
   * that was known; no less than that in the ten seconds after, because a Redis that came back empty does not know all replicas yet.
   */
  get liveReplicas(): number {
    const { count, until } = this.#before;
    return this.#clock.monotonicMs() < until ? Math.max(count, this.#counted) : this.#counted;
  }

  get replicaId(): string {
    return this.#replicaId;
  }

  /** From now on the heartbeats say more of this replica: an object that JSON can hold. */
  describeWith(describe: () => object): void {
    this.#describe = describe;
    void this.beat();
  }

  /** Those that were seen last, `limit` at most, and how many there are. Rejects with `StoreUnavailable`. */
  async list(limit: number): Promise<{ readonly replicas: readonly LiveReplica[]; readonly total: number }> {
    try {
      const [total, seen] = await Promise.all([
        this.#redis.zcard(REPLICAS_KEY),
        this.#redis.zrevrange(REPLICAS_KEY, 0, limit - 1, 'WITHSCORES'),
      ]);
      const ids = seen.filter((_, index) => index % 2 === 0);
      // One by one: in a cluster they lie in different slots.
      const texts = await Promise.all(ids.map((id) => this.#redis.get(replicaKey(id))));
      const replicas = ids.map((replicaId, index) => ({
        replicaId,
        lastSeenAtMs: Number(seen[2 * index + 1]),
        description: parsed(texts[index] ?? null),
      }));
      return { replicas, total };
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** Gives a sign of life now and every two seconds, without keeping the process alive. */
  start(): void {
    if (this.#timer !== undefined) return;
    void this.beat();
    // A connection that comes up later is not waited for: the others should know of this replica at once.
    this.#redis.on('ready', this.#beatWhenReady);
    this.#timer = setInterval(() => void this.beat(), BEAT_INTERVAL_MS);
    this.#timer.unref();
  }

  /** Gives one sign of life and counts. Resolves with false when Redis did not respond. */
  async beat(): Promise<boolean> {
    const sentAtMs = this.#clock.nowMs();
    try {
      const count = await this.#countReplicas.run(this.#redis, [
        REPLICAS_KEY,
        this.#replicaId,
        String(SILENT_FOR_MS),
      ]);
      if (typeof count === 'number') this.#counted = Math.max(count, 1);
      if (this.#describe !== undefined) {
        const text = JSON.stringify(this.#describe());
        await this.#redis.set(replicaKey(this.#replicaId), text, 'PX', SILENT_FOR_MS);
      }
      this.#outages.noteResponse(sentAtMs);
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
      await this.#redis.zrem(REPLICAS_KEY, this.#replicaId);
      await this.#redis.del(replicaKey(this.#replicaId));
    } catch {
      // It is forgotten ten seconds after its last heartbeat.
    }
  }

  readonly #beatWhenReady = (): void => {
    this.#before = { count: this.liveReplicas, until: this.#clock.monotonicMs() + SILENT_FOR_MS };
    void this.beat();
  };
}

function parsed(text: string | null): unknown {
  if (text === null) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
