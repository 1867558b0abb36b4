import type { Logger } from '../platform/logger.ts';
import type { Random } from '../platform/random.ts';
import type { LiveUsage, UsageWrite } from './live-usage.ts';
import type { Tally } from './tally.ts';

/** What became of the records, since the process started. Plain numbers, for metrics. */
export interface WriterStats {
  /** Requests of deleted keys, which were dropped. */
  readonly recordsDropped: number;
  /** Writes, each of one key, whose outcome was unknown and that were or will be made again. */
  readonly writesUnknown: number;
  /** Keys whose last write is to be made again. */
  readonly keysUnsettled: number;
}

/** What the writer needs. */
export interface TallyWriterOptions {
  readonly tally: Tally;
  readonly live: LiveUsage;
  readonly log: Logger;
  readonly random: Random;
}

/**
 * Writes the tally to the live usage, one write a key. A write whose outcome is unknown is kept as it is and made again, before anything
 * newer of its key, until its outcome is known: so each record is counted exactly once, although the store may be away or slow.
 */
export class TallyWriter {
  readonly #tally: Tally;
  readonly #live: LiveUsage;
  readonly #log: Logger;
  readonly #name: string;
  readonly #unsettled = new Map<string, UsageWrite>();
  #sequence = 0;
  #recordsDropped = 0;
  #writesUnknown = 0;
  #writing: Promise<boolean> | undefined;

  constructor({ tally, live, log, random }: TallyWriterOptions) {
    this.#tally = tally;
    this.#live = live;
    this.#log = log;
    this.#name = random.bytes(12).toString('base64url');
  }

  get stats(): WriterStats {
    return {
      recordsDropped: this.#recordsDropped,
      writesUnknown: this.#writesUnknown,
      keysUnsettled: this.#unsettled.size,
    };
  }

  /**
   * Writes what was recorded until now. Resolves with true when all of it is settled, with false when something is left to be written
   * again. Never rejects. While one write is under way, callers get its promise.
   */
  write(): Promise<boolean> {
    this.#writing ??= this.#writeOnce().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /** Writes until nothing is left, or the deadline has passed. Resolves with whether nothing is left. Call it when nothing records any more. */
  async drain(deadline: AbortSignal): Promise<boolean> {
    // What is under way may have begun before the last record.
    await this.#writing;
    while (!(await this.write()) || this.#tally.size > 0) {
      if (deadline.aborted) return false;
      await pause(50);
    }
    return true;
  }

  async #writeOnce(): Promise<boolean> {
    this.#sequence += 1;
    const taken = this.#tally.take(this.#unsettled);
    const writes = [...this.#unsettled.values()];
    for (const [keyId, sums] of taken)
      writes.push({ keyId, writer: this.#name, sequence: this.#sequence, sums });
    if (writes.length === 0) return true;
    const wasSettled = this.#unsettled.size === 0;
    const outcomes = await this.#live.write(writes);
    writes.forEach((write, index) => {
      this.#settle(write, outcomes[index] ?? 'unknown');
    });
    this.#logChange(wasSettled);
    return this.#unsettled.size === 0;
  }

  #settle(write: UsageWrite, outcome: 'written' | 'dropped' | 'unknown'): void {
    if (outcome === 'unknown') {
      this.#unsettled.set(write.keyId, write);
      this.#writesUnknown += 1;
      return;
    }
    this.#unsettled.delete(write.keyId);
    if (outcome === 'dropped') this.#recordsDropped += write.sums.totals.requests;
  }

  /** One line when the store goes away, one when it is back. */
  #logChange(wasSettled: boolean): void {
    const keys = this.#unsettled.size;
    if (wasSettled && keys > 0)
      this.#log.warn({ keys }, 'usage could not be written; it is kept and tried again');
    if (!wasSettled && keys === 0) this.#log.info('usage is written again');
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
