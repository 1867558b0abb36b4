import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { Random } from '../platform/random.ts';
import type { LiveUsage } from './live-usage.ts';
import { Repeater } from './repeater.ts';
import { StoredUsage } from './stored-usage.ts';
import { Tally } from './tally.ts';
import { TallyWriter, type WriterStats } from './tally-writer.ts';
import type { UsageEraser, UsageReader, UsageRecorder, UsageTimeline } from './usage.ts';
import { type FlusherStats, UsageFlusher } from './usage-flusher.ts';
import type { UsageHistory } from './usage-history.ts';

/** What the usage statistics are made of. */
export interface UsageOptions {
  readonly live: LiveUsage;
  readonly history: UsageHistory;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Takes out of a path or a customer's id what must not be stored. */
  readonly mask: (name: string) => string;
  /** Days for which the counts by hour are kept. */
  readonly retentionDays: number;
  /** Milliseconds that a record stays in this process at most, when the store answers. 250 unless told. */
  readonly writeEveryMs?: number;
  /**
   * Milliseconds between two rounds of the flusher. Unless told 2000, or 250 where live counts end with the process and only the history is safe.
   */
  readonly flushEveryMs?: number;
}

/** Numbers for metrics, all since the process started unless they say "now". */
interface UsageStats {
  readonly writer: WriterStats;
  readonly flusher: FlusherStats;
  /** Keys with records in this process now. */
  readonly keysTallied: number;
}

/** The usage statistics of one replica. */
export interface Usage {
  readonly recorder: UsageRecorder;
  readonly reader: UsageReader;
  readonly timeline: UsageTimeline;
  readonly eraser: UsageEraser;
  readonly stats: UsageStats;
  start(): void;
  /** Removes hours that are no longer kept, now and every hour. To be called once the history has its tables. */
  startPruning(): void;
  /**
   * Writes what was recorded, within `deadlineMs`; without a shared store also moves it to the history. Call it when nothing records any
   * more and before the stores are closed. Resolves with false when something had to be left behind, which is then logged. Never rejects.
   */
  stop(deadlineMs: number): Promise<boolean>;
}

const HOUR_MS = 3_600_000;
const HOURS_A_DAY = 24;
const ROWS_PRUNED_AT_ONCE = 5000;

export function createUsage(options: UsageOptions): Usage {
  const { live, history, clock, random, log, mask } = options;
  const tally = new Tally({ clock, mask });
  const writer = new TallyWriter({ tally, live, log, random });
  const flusher = new UsageFlusher({ live, history, log });
  const stored = new StoredUsage(live, history);
  const writing = new Repeater(() => writer.write(), random, options.writeEveryMs ?? 250, 2000);
  const flushing = new Repeater(
    () => flusher.flush(),
    random,
    options.flushEveryMs ?? (live.isShared ? 2000 : 250),
    30_000,
  );
  const prune = () =>
    pruneHours(history, Math.floor(clock.nowMs() / HOUR_MS) - options.retentionDays * HOURS_A_DAY, log);
  const pruning = new Repeater(prune, random, HOUR_MS, HOUR_MS);
  /** So that whoever asks right after an answer finds it counted. Of other replicas, what they have not written yet is missing. */
  const writeOwn = async (): Promise<void> => {
    // A store that did not take the last write will not be there for the reading either.
    if (writer.stats.keysUnsettled > 0) return;
    await writer.write();
    // That write may have been under way before the last record.
    if (tally.size > 0 && writer.stats.keysUnsettled === 0) await writer.write();
  };
  return {
    recorder: tally,
    reader: {
      read: async (keyId) => {
        await writeOwn();
        return stored.read(keyId);
      },
    },
    timeline: {
      readHours: async (keyId, sinceMs) => {
        await writeOwn();
        return stored.readHours(keyId, sinceMs);
      },
    },
    eraser: stored,
    get stats() {
      return { writer: writer.stats, flusher: flusher.stats, keysTallied: tally.size };
    },
    start: () => {
      writing.start();
      flushing.start();
    },
    startPruning: () => pruning.startAtOnce(),
    stop: async (deadlineMs) => {
      const deadline = AbortSignal.timeout(deadlineMs);
      const rounds = Promise.all([pruning.stop(), flusher.stop(), flushing.stop()]);
      await writing.stop();
      const isWritten = await writer.drain(deadline);
      await Promise.race([rounds, aborted(deadline)]);
      // Shared counts are safe where they are, and other replicas or the next start will move them.
      const isSafe = isWritten && (live.isShared || (await flusher.flush()));
      if (!isSafe) log.error({ keys: tally.size + writer.stats.keysUnsettled }, 'usage was lost at the stop');
      return isSafe;
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Removes hours that are no longer kept, a few at a time, so that it never holds many rows. Resolves with whether it could. */
async function pruneHours(history: UsageHistory, beforeHour: number, log: Logger): Promise<boolean> {
  try {
    while ((await history.prune(beforeHour, ROWS_PRUNED_AT_ONCE)) === ROWS_PRUNED_AT_ONCE);
    return true;
  } catch (error) {
    log.warn({ err: error }, 'old usage could not be removed; it is tried again');
    return false;
  }
}
