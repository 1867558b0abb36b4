// The room `usage`: usage statistics, from a request that has ended to a series over years.
// In: ended requests (`UsageRecorder`).
// Out: counts by key, endpoint and customer: buffered here, live in Redis, by hour and day in Postgres.

import { once } from 'node:events';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import { loggedRun, PeriodicTask } from '../platform/periodic-task.ts';
import type { Random } from '../platform/random.ts';
import type { LiveUsage } from './live-usage.ts';
import { LiveUsageWriter, LONGEST_RETRY_MS, WRITE_EVERY_MS, type WriterStats } from './live-usage-writer.ts';
import { StoredUsage } from './stored-usage.ts';
import { UsageBuffer, type UsageRecorder } from './usage-buffer.ts';
import type { UsageReader } from './usage-counts.ts';
import { type FlusherStats, SPREAD, UNSHARED_FLUSH_MS, UsageFlusher } from './usage-flusher.ts';
import type { UsageHistory } from './usage-history.ts';

/** What the usage statistics are made of. */
export interface UsageOptions {
  readonly live: LiveUsage;
  readonly history: UsageHistory;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Masks credentials in a path or a customer's id. */
  readonly mask: (name: string) => string;
  /** Days for which counts by hour are kept, and counts by day of endpoints and customers. */
  readonly retentionDays: number;
  readonly dailyRetentionDays: number;
  /** Milliseconds between two moves of a shard to the history. At most 250 if live counts end with the process. */
  readonly flushEveryMs: number;
}

/** Numbers for metrics, all since the process started unless they say "now". */
interface UsageStats {
  readonly writer: WriterStats;
  readonly flusher: FlusherStats;
  /** Keys with records in this process now. */
  readonly keysBuffered: number;
}

/** The usage statistics of one replica. */
export interface Usage {
  readonly recorder: UsageRecorder;
  readonly reader: UsageReader;
  /** Counts that are not in the history yet. `read` first writes what this replica has buffered. */
  readonly pending: Pick<LiveUsage, 'read' | 'oldestAtMs'> & {
    /** An instant before which nothing waits, from the last time that this could be read; undefined if it never could. */
    readonly knownOldestAtMs: () => number | undefined;
  };
  readonly stats: UsageStats;
  /** Between two moves of a shard to the history. Milliseconds. */
  readonly flushIntervalMs: number;
  start(): void;
  /** Removes usage past its retention, now and every hour. Call it once the history has its tables. */
  startPruning(): void;
  /**
   * Writes the recorded usage within `deadlineMs`; without a shared store also moves it to the history. Call it after the last record and
   * before the stores are closed. Resolves with false, and logs an error, if some usage was not saved. Never rejects.
   */
  stop(deadlineMs: number): Promise<boolean>;
}

/** How often it is noted since when counts wait, to know it when the store does not respond. Milliseconds. */
const NOTE_OLDEST_EVERY_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function createUsage(options: UsageOptions): Usage {
  const { live, history, clock, random, log, mask, flushEveryMs } = options;
  const intervalMs = live.isShared ? flushEveryMs : Math.min(flushEveryMs, UNSHARED_FLUSH_MS);
  const buffer = new UsageBuffer({ clock, mask });
  const writer = new LiveUsageWriter({ buffer, live, history, clock, log, random });
  const flusher = new UsageFlusher({ live, history, clock, log, intervalMs });
  const read: LiveUsage['read'] = async (keyIds) => {
    await writeBuffer(buffer, writer);
    return live.read(keyIds);
  };
  const writing = new PeriodicTask(() => writer.write(), {
    random,
    pauseMs: WRITE_EVERY_MS,
    longestPauseMs: LONGEST_RETRY_MS,
  });
  // The pause does not grow after failures, because the rounds of an outage compact the counts that wait.
  const flushing = live.isShared
    ? new PeriodicTask(() => flusher.flushEvenly(), { random, pauseMs: intervalMs * (1 - SPREAD) })
    : new PeriodicTask(() => flusher.flush(), { random, pauseMs: intervalMs });
  const pruning = new PeriodicTask((goesOn) => prune(options, goesOn), { random, pauseMs: HOUR_MS });
  const oldest = new OldestPending(live, clock);
  const noting = new PeriodicTask(() => oldest.note(), { random, pauseMs: NOTE_OLDEST_EVERY_MS });
  const parts: UsageParts = { live, log, buffer, writer, flusher, writing, flushing, pruning, noting };
  return {
    recorder: buffer,
    reader: new StoredUsage({ read }, history),
    pending: { read, oldestAtMs: () => oldest.read(), knownOldestAtMs: () => oldest.knownAtMs },
    flushIntervalMs: intervalMs,
    get stats() {
      return { writer: writer.stats, flusher: flusher.stats, keysBuffered: buffer.size };
    },
    start: () => {
      writing.start();
      flushing.start();
      if (live.isShared) noting.startAtOnce();
    },
    startPruning: () => pruning.startAtOnce(),
    stop: (deadlineMs) => stopUsage(parts, deadlineMs),
  };
}

/** What a replica writes usage with. */
interface UsageParts extends Pick<UsageOptions, 'live' | 'log'> {
  readonly buffer: UsageBuffer;
  readonly writer: LiveUsageWriter;
  readonly flusher: UsageFlusher;
  readonly writing: PeriodicTask;
  readonly flushing: PeriodicTask;
  readonly pruning: PeriodicTask;
  readonly noting: PeriodicTask;
}

/**
 * Since when counts have waited to be moved to the history. The last known instant stays a lower bound while the store does not respond:
 * counts that came later wait since later.
 */
class OldestPending {
  /** Undefined until the store has responded. Milliseconds since 1970. */
  knownAtMs: number | undefined;
  readonly #live: Pick<LiveUsage, 'oldestAtMs'>;
  readonly #clock: Clock;

  constructor(live: Pick<LiveUsage, 'oldestAtMs'>, clock: Clock) {
    this.#live = live;
    this.#clock = clock;
  }

  /** As `LiveUsage.oldestAtMs`. */
  async read(): Promise<number | undefined> {
    const nowMs = this.#clock.nowMs();
    const oldestAtMs = await this.#live.oldestAtMs();
    this.knownAtMs = Math.min(oldestAtMs ?? nowMs, nowMs);
    return oldestAtMs;
  }

  /** Reads it. Resolves with whether the store responded. */
  async note(): Promise<boolean> {
    return this.read().then(
      () => true,
      () => false,
    );
  }
}

/** Writes the buffer before a read, so that a client finds its last request counted. Unwritten counts of other replicas are missing. */
async function writeBuffer(buffer: UsageBuffer, writer: LiveUsageWriter): Promise<void> {
  // The store did not acknowledge the last write: another attempt would only delay the read.
  if (writer.stats.shardsUnsettled > 0) return;
  await writer.write();
  // The write may have been under way already, without the last record.
  if (buffer.size > 0 && writer.stats.shardsUnsettled === 0) await writer.write();
}

async function stopUsage(
  { live, log, buffer, writer, flusher, writing, flushing, pruning, noting }: UsageParts,
  deadlineMs: number,
): Promise<boolean> {
  const deadline = AbortSignal.timeout(deadlineMs);
  const late = once(deadline, 'abort');
  const rounds = Promise.all([pruning.stop(), noting.stop(), flusher.stop(), flushing.stop()]);
  await writing.stop();
  const isWritten = await writer.drain(deadline);
  await Promise.race([rounds, late]);
  // Counts in a shared store are safe: other replicas, or this one after its next start, move them.
  const isSafe = isWritten && (live.isShared || (await flusher.flush()));
  if (!isSafe)
    log.error({ keys: buffer.size, requests: writer.requestsUnsettled }, 'usage was lost at the stop');
  return isSafe;
}

/** Resolves with whether the history could be pruned. */
function prune(
  { history, clock, log, retentionDays, dailyRetentionDays }: UsageOptions,
  goesOn: () => boolean,
): Promise<boolean> {
  const kept = { hoursKeptMs: retentionDays * DAY_MS, daysKeptMs: dailyRetentionDays * DAY_MS };
  return loggedRun(
    () => history.prune({ nowMs: clock.nowMs(), ...kept }, goesOn),
    log,
    'the months of usage could not all be made, or old usage not be removed; it is tried again',
  );
}
