import type { Clock } from '../../platform/clock.ts';
import type { Random } from '../../platform/random.ts';
import type { LiveUsage, UsageBatch, UsageWrite, WriteOutcome } from '../../usage/live-usage.ts';
import { SHARDS, shardOf } from '../../usage/shards.ts';
import { SliceTable, STORED_CAPS } from '../../usage/slice-table.ts';

interface LiveCounts {
  readonly id: number;
  readonly table: SliceTable;
}

interface LiveShard {
  live: LiveCounts | undefined;
  batch: UsageBatch | undefined;
  readonly sequences: Map<string, number>;
}

/** Live usage of a gateway that is one process and has no Redis. Counts that are not in the history yet are lost with the process. */
export class InProcessLiveUsage implements LiveUsage {
  readonly isShared = false;
  readonly #clock: Clock;
  readonly #source: string;
  readonly #shards: readonly LiveShard[];
  #lastId = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#source = `process-${random.bytes(9).toString('base64url')}`;
    this.#shards = Array.from({ length: SHARDS }, () => ({
      live: undefined,
      batch: undefined,
      sequences: new Map(),
    }));
  }

  async write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]> {
    return writes.map((write) => this.#write(write));
  }

  async take(shard: number): Promise<readonly UsageBatch[]> {
    const counts = this.#shards[shard];
    if (counts?.live !== undefined && counts.batch === undefined) {
      counts.batch = this.#batchOf(shard, counts.live, new Map(counts.sequences));
      counts.live = undefined;
    }
    return counts?.batch === undefined ? [] : [counts.batch];
  }

  async drop({ shard, id }: UsageBatch): Promise<void> {
    const counts = this.#shards[shard];
    if (counts?.batch?.id === id) counts.batch = undefined;
  }

  async renew(): Promise<boolean> {
    // There is only one flusher.
    return true;
  }

  async release(): Promise<void> {
    // As above.
  }

  async compact(): Promise<void> {
    // The live counts are within the caps from the start.
  }

  async read(keyIds: readonly string[]): Promise<readonly UsageBatch[]> {
    const wanted = new Set(keyIds);
    const batches = [...new Set(keyIds.map(shardOf))].flatMap((shard) => {
      const counts = this.#shards[shard];
      const live = counts?.live && this.#batchOf(shard, counts.live, new Map());
      return [counts?.batch, live].filter((batch) => batch !== undefined);
    });
    const ofKeys = batches.map((batch) => ({
      ...batch,
      slices: batch.slices.filter(({ keyId }) => wanted.has(keyId)),
    }));
    // A copy, because the live counts may grow while the history is read.
    return structuredClone(ofKeys.filter(({ slices }) => slices.length > 0));
  }

  async oldestAtMs(): Promise<number | undefined> {
    const ids = this.#shards.flatMap(({ live, batch }) => batch?.id ?? live?.id ?? []);
    return ids.length === 0 ? undefined : Math.min(...ids) / 1000;
  }

  #write({ shard, writer, sequence, recorded }: UsageWrite): WriteOutcome {
    const counts = this.#shards[shard];
    if (counts === undefined || sequence <= (counts.sequences.get(writer) ?? 0)) return 'written';
    counts.sequences.set(writer, sequence);
    counts.live ??= { id: this.#nextId(), table: new SliceTable(STORED_CAPS) };
    for (const each of recorded) counts.live.table.add(each);
    return 'written';
  }

  #batchOf(shard: number, { id, table }: LiveCounts, writers: ReadonlyMap<string, number>): UsageBatch {
    return { shard, source: this.#source, id, slices: table.slices, writers };
  }

  /** Microseconds since 1970, and always above the last id. */
  #nextId(): number {
    this.#lastId = Math.max(Math.floor(this.#clock.nowMs() * 1000), this.#lastId + 1);
    return this.#lastId;
  }
}
