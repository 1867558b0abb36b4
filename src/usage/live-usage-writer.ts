import { setTimeout as pause } from 'node:timers/promises';
import { StoreUnavailable } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { Random } from '../platform/random.ts';
import type { LiveUsage, UsageWrite, WriteOutcome } from './live-usage.ts';
import type { UsageBuffer } from './usage-buffer.ts';
import type { UsageHistory } from './usage-history.ts';
import { totalsOf } from './usage-slice.ts';

/** What became of the records, since the process started. Plain numbers, for metrics. */
export interface WriterStats {
  /** Writes of one shard whose outcome was unknown, and that were or will be retried. */
  readonly writesUnknown: number;
  /** Times that the store was found to have lost acknowledged writes of a shard. */
  readonly rollbacks: number;
  /** Shards whose last write will be retried. */
  readonly shardsUnsettled: number;
}

/** What the writer needs. */
export interface LiveUsageWriterOptions {
  readonly buffer: UsageBuffer;
  readonly live: LiveUsage;
  readonly history: Pick<UsageHistory, 'hasWrite'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Logger;
  readonly random: Random;
}

/** Longest that a record stays in this process when the store responds. Milliseconds. */
export const WRITE_EVERY_MS = 250;
/** The longest pause between retries of a write that failed; the pause doubles up to it. Milliseconds. */
export const LONGEST_RETRY_MS = 2000;
/**
 * A store may forget a writer that wrote nothing to a shard for a day. Half of that, because the clocks differ; what was written so long ago
 * has been moved to the history. Milliseconds.
 */
const REMEMBERED_MS = 12 * 3_600_000;
const LOSS_LINE_EVERY_MS = 600_000;

interface Unsettled {
  readonly write: UsageWrite;
  /** The store may have executed the write although there was no reply. */
  readonly mayBeWritten: boolean;
}

/**
 * Writes the buffer to the live usage, one write for each shard. A write whose outcome is unknown is retried unchanged, before any newer
 * write of its shard, until its outcome is known: so each record is counted exactly once, although the store may be unavailable or slow. If
 * the store has lost its record of a write, the history says whether it was counted.
 */
export class LiveUsageWriter {
  readonly #options: LiveUsageWriterOptions;
  readonly #name: string;
  readonly #unsettled = new Map<number, Unsettled>();
  /** The last acknowledged write of each shard: its number, and when that was, by the monotonic clock. */
  readonly #acknowledged = new Map<number, { readonly sequence: number; readonly atMs: number }>();
  #sequence = 0;
  #writesUnknown = 0;
  #rollbacks = 0;
  #lossesLogged = 0;
  #nextLossLineAtMs = Number.NEGATIVE_INFINITY;
  #writing: Promise<boolean> | undefined;

  constructor(options: LiveUsageWriterOptions) {
    this.#options = options;
    this.#name = options.random.bytes(12).toString('base64url');
  }

  get stats(): WriterStats {
    return {
      writesUnknown: this.#writesUnknown,
      rollbacks: this.#rollbacks,
      shardsUnsettled: this.#unsettled.size,
    };
  }

  /** Requests in writes whose outcome is not known. */
  get requestsUnsettled(): number {
    const recorded = [...this.#unsettled.values()].flatMap(({ write }) => write.recorded);
    return recorded.reduce((sum, each) => sum + totalsOf(each).requests, 0);
  }

  /**
   * Writes the buffer. Resolves with true if all writes are settled, with false if some will be retried. Never rejects. While one write is
   * under way, callers get the same promise.
   */
  write(): Promise<boolean> {
    this.#writing ??= this.#writeOnce().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /**
   * Writes until the buffer is empty and all writes are settled, or until the deadline. Resolves with whether that succeeded. Call it after
   * the last record.
   */
  async drain(deadline: AbortSignal): Promise<boolean> {
    // A write under way may have begun before the last record.
    await this.#writing;
    while (!(await this.write()) || this.#options.buffer.size > 0) {
      if (deadline.aborted) return false;
      await pause(50);
    }
    return true;
  }

  async #writeOnce(): Promise<boolean> {
    const { buffer, live } = this.#options;
    this.#sequence += 1;
    const taken = buffer.take(this.#unsettled);
    const writes = [...this.#unsettled.values()].map(({ write }) => write);
    for (const [shard, recorded] of taken) {
      const previous = this.#acknowledged.get(shard)?.sequence ?? 0;
      writes.push({ shard, writer: this.#name, sequence: this.#sequence, previous, recorded });
    }
    if (writes.length === 0) return true;
    const wasSettled = this.#unsettled.size === 0;
    const outcomes = await live.write(writes);
    await Promise.all(writes.map((write, index) => this.#settle(write, outcomes[index] ?? 'unknown')));
    this.#logLosses();
    this.#logChange(wasSettled, writes, outcomes);
    return this.#unsettled.size === 0;
  }

  async #settle(write: UsageWrite, outcome: WriteOutcome): Promise<void> {
    switch (outcome) {
      case 'written':
        return this.#acknowledge(write);
      case 'forgotten':
        return this.#recover(write, this.#unsettled.get(write.shard)?.mayBeWritten ?? false);
      default:
        this.#unsettled.set(write.shard, { write, mayBeWritten: true });
        this.#writesUnknown += 1;
    }
  }

  #acknowledge({ shard, sequence }: UsageWrite): void {
    this.#unsettled.delete(shard);
    this.#acknowledged.set(shard, { sequence, atMs: this.#options.clock.monotonicMs() });
  }

  /**
   * The store can't tell whether it executed the write. If that is possible, the history knows. A write that was not executed is sent once
   * more as a new one: only if the store then lacks the write before it, it has lost acknowledged usage.
   */
  async #recover(write: UsageWrite, mayBeWritten: boolean): Promise<void> {
    const { history } = this.#options;
    try {
      const isCounted = mayBeWritten && (await history.hasWrite(write.shard, write.writer, write.sequence));
      if (isCounted || !mayBeWritten) this.#noteRollback(write);
      if (isCounted) return this.#acknowledge(write);
      // Without the check of `previous` where the store is known to lack it.
      const previous = mayBeWritten ? write.previous : undefined;
      this.#unsettled.set(write.shard, { write: { ...write, previous }, mayBeWritten: false });
    } catch {
      // The history is unavailable too: the write is still unsettled, and the next round tries again.
    }
  }

  /** Counts a loss, if the store had a write of this writer to the shard that it should still know. */
  #noteRollback({ shard }: UsageWrite): void {
    const last = this.#acknowledged.get(shard);
    if (last !== undefined && this.#options.clock.monotonicMs() - last.atMs < REMEMBERED_MS)
      this.#rollbacks += 1;
  }

  /** At most one line in a while: a Redis that evicts keys loses some with each write. */
  #logLosses(): void {
    const shards = this.#rollbacks - this.#lossesLogged;
    const nowMs = this.#options.clock.monotonicMs();
    if (shards === 0 || nowMs < this.#nextLossLineAtMs) return;
    this.#lossesLogged = this.#rollbacks;
    this.#nextLossLineAtMs = nowMs + LOSS_LINE_EVERY_MS;
    this.#options.log.warn(
      { shards },
      'Redis was replaced, restored to an earlier state, or evicts keys: the usage that it lost is lost; its maxmemory-policy must be noeviction',
    );
  }

  /** One line when the store becomes unavailable, with the reason and the shard of the first failure, and one when it is back. */
  #logChange(wasSettled: boolean, writes: readonly UsageWrite[], outcomes: readonly WriteOutcome[]): void {
    const { log } = this.#options;
    const shards = this.#unsettled.size;
    if (wasSettled && shards > 0) {
      const failed = outcomes.findIndex((outcome) => outcome instanceof StoreUnavailable);
      const facts = { shards, shard: writes[failed]?.shard, reason: reasonOf(outcomes[failed]) };
      log.warn(facts, 'usage could not be written; it is kept and tried again');
    }
    if (!wasSettled && shards === 0) log.info('usage is written again');
  }
}

function reasonOf(outcome: WriteOutcome | undefined): string | undefined {
  return outcome instanceof StoreUnavailable ? outcome.reason : undefined;
}
