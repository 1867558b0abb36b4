import { setTimeout as pause } from 'node:timers/promises';
import { StoreBusy, StoreUnavailable } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import type { LiveUsage, UsageBatch } from './live-usage.ts';
import { OutageReminder } from './outage-reminder.ts';
import { ShardLease, ShardLeaseEnded } from './shard-lease.ts';
import { SHARDS } from './shards.ts';
import type { UsageHistory } from './usage-history.ts';

/** Shards that one replica moves at a time. */
const LANES = 2;
/** Longest flush interval if live counts end with the process. Milliseconds. */
export const UNSHARED_FLUSH_MS = 250;
/** The part of the interval over which an even round is spread; the rest is for the pause after it. */
export const SPREAD = 0.5;

/** What the flusher did, since the process started. Plain numbers, for metrics. */
export interface FlusherStats {
  /** Batches that this replica added to the history. */
  readonly batchesApplied: number;
  /** Batches that it has taken and not yet removed. */
  readonly batchesPending: number;
  /** Batches that the history had already, because the store of the live counts was restored to an earlier state. */
  readonly batchesOutdated: number;
  /** Shards whose lock ended while this replica was still at work on them. */
  readonly leasesLost: number;
  /** How long it went on with these until it noticed, together. Milliseconds. */
  readonly leaseOverrunMs: number;
  /** Rounds that ended early because a store did not respond or rejected a batch. */
  readonly failures: number;
  /** By how many milliseconds the most overdue batch of the last round was late. */
  readonly lagMs: number;
  /** When the last round ended that moved all that was due; 0 before the first. Milliseconds since 1970. */
  readonly lastDoneAtMs: number;
}

/** What the flusher needs. */
export interface FlusherOptions {
  readonly live: LiveUsage;
  readonly history: UsageHistory;
  readonly clock: Clock;
  readonly log: Logger;
  /** How often a shard is moved. Milliseconds. */
  readonly intervalMs: number;
}

/**
 * Moves counts from the live usage to the history, shard by shard. Every replica runs one and there is no leader: when one dies at
 * any step, another one finishes the shard once its lock has expired.
 */
export class UsageFlusher {
  readonly #options: FlusherOptions;
  #stats = {
    batchesApplied: 0,
    batchesPending: 0,
    batchesOutdated: 0,
    leasesLost: 0,
    leaseOverrunMs: 0,
    failures: 0,
    lagMs: 0,
    lastDoneAtMs: 0,
  };
  #stopping = new AbortController();
  /** Rounds in a row that found a store unavailable. */
  #unavailableRounds = 0;
  readonly #outage: OutageReminder;
  /** By how much the most overdue batch of the round under way is late. Milliseconds. */
  #lagOfRoundMs = 0;
  #flushing: Promise<boolean> | undefined;

  constructor(options: FlusherOptions) {
    this.#options = options;
    this.#outage = new OutageReminder(options.log, options.clock);
  }

  get stats(): FlusherStats {
    return { ...this.#stats };
  }

  /**
   * Moves all counts that are due, as fast as possible. Resolves with false if something failed, or was left for later by `stop`. Never
   * rejects. While a round is under way, callers get the same promise; after a `stop` they get that of a further round.
   */
  flush(): Promise<boolean> {
    return this.#flushOver(0);
  }

  /**
   * Like `flush`, but shard by shard over `SPREAD` of the interval: moved all at once, the shards would keep the process and the stores
   * busy for some tenths of a second, and requests would wait.
   */
  flushEvenly(): Promise<boolean> {
    return this.#flushOver(this.#options.intervalMs * SPREAD);
  }

  /** Ends the round under way after the shards that it is moving. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#flushing;
  }

  #flushOver(spreadMs: number): Promise<boolean> {
    if (this.#flushing !== undefined && this.#stopping.signal.aborted)
      return this.#flushing.then(() => this.#flushOver(spreadMs));
    this.#flushing ??= this.#flushAll(spreadMs).finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flushAll(spreadMs: number): Promise<boolean> {
    this.#stopping = new AbortController();
    const { signal } = this.#stopping;
    this.#lagOfRoundMs = 0;
    const appliedBefore = this.#stats.batchesApplied;
    const shards = Array.from({ length: SHARDS }, (_, shard) => shard).values();
    const round = { isStoreUnavailable: false, isStoreBusy: false, isDone: true };
    const noteFailureOf = (shard: number) => (error: unknown) => {
      this.#note(error, shard);
      round.isDone = false;
      // Another transaction may hold the shard, or its keys: nothing that the other shards need.
      if (error instanceof StoreBusy) round.isStoreBusy = true;
      else if (error instanceof StoreUnavailable) round.isStoreUnavailable = true;
    };
    const flushNext = async (shard: number) => {
      const noteFailure = noteFailureOf(shard);
      try {
        // Once a store was unavailable, the other shards of the round need not wait for it as well.
        if (!round.isStoreUnavailable) await this.#flushShard(shard, noteFailure);
        else if (this.#isTimeToCompact) await this.#options.live.compact(shard);
      } catch (error) {
        noteFailure(error);
      }
    };
    const stepMs = (spreadMs / SHARDS) * LANES;
    const lane = async (index: number) => {
      await pauseUntilStop((stepMs / LANES) * index, signal);
      for (const shard of shards) {
        if (signal.aborted) return;
        await Promise.all([flushNext(shard), pauseUntilStop(stepMs, signal)]);
      }
    };
    await Promise.all(Array.from({ length: LANES }, (_, index) => lane(index)));
    this.#unavailableRounds = round.isStoreUnavailable ? this.#unavailableRounds + 1 : 0;
    this.#stats.lagMs = this.#lagOfRoundMs;
    const isDone = round.isDone && !signal.aborted;
    if (!round.isStoreUnavailable && !round.isStoreBusy && !signal.aborted)
      this.#outage.noteRound(this.#stats.batchesApplied > appliedBefore);
    if (isDone) this.#stats.lastDoneAtMs = this.#options.clock.nowMs();
    return isDone;
  }

  /**
   * Whether to compact in this round: in rounds 1, 2, 4, … of an outage, because compacting reads all that waits. Between these rounds the
   * writers keep the counts within the caps.
   */
  get #isTimeToCompact(): boolean {
    const rounds = this.#unavailableRounds + 1;
    return (rounds & (rounds - 1)) === 0;
  }

  #note(error: unknown, shard: number): void {
    this.#stats.failures += 1;
    if (error instanceof StoreUnavailable) this.#outage.noteFailure(error);
    else this.#options.log.error({ shard, err: error }, 'usage was rejected by its store; it is kept');
  }

  async #flushShard(shard: number, noteFailure: (error: unknown) => void): Promise<void> {
    const { live, clock, intervalMs } = this.#options;
    const askedAtMs = clock.monotonicMs();
    const batches = await live.take(shard);
    if (batches === undefined) return;
    const lease = new ShardLease(live, clock, { shard, askedAtMs });
    this.#stats.batchesPending += batches.length;
    try {
      for (const batch of batches) await this.#move(batch, lease);
      lease.requireHeld();
    } catch (error) {
      // The shard is another replica's by now, which moves what is left. A replica that stood still may first see that a statement took
      // too long.
      if (error instanceof ShardLeaseEnded || lease.overrunMs > 0) return this.#noteLost(shard, lease);
      // Noted first, because only the first failure of an outage is logged at once. If `compact` fails as well, the shard is still
      // released.
      noteFailure(error);
      await live.compact(shard).catch(noteFailure);
      if (lease.overrunMs === 0) await live.release(shard, 0).catch(noteFailure);
      return;
    } finally {
      lease.stop();
      this.#stats.batchesPending -= batches.length;
    }
    // Unlocked a little early, so that the next round can take the shard.
    await live.release(shard, Math.floor(intervalMs * 0.7));
  }

  #noteLost(shard: number, lease: ShardLease): void {
    const overrunMs = Math.round(lease.overrunMs);
    this.#stats.leasesLost += 1;
    this.#stats.leaseOverrunMs += overrunMs;
    this.#options.log.warn(
      { shard, overrunMs },
      'the lock of a shard of usage ended before its counts were moved; nothing is lost or counted twice',
    );
  }

  async #move(batch: UsageBatch, lease: ShardLease): Promise<void> {
    const { live, history, clock, intervalMs } = this.#options;
    lease.requireHeld();
    const lateMs = clock.nowMs() - batch.id / 1000 - intervalMs;
    this.#lagOfRoundMs = Math.max(this.#lagOfRoundMs, Math.round(lateMs));
    // Until the round ends, the lag is at least that of the last round: the most overdue batch may not have been moved yet.
    this.#stats.lagMs = Math.max(this.#stats.lagMs, this.#lagOfRoundMs);
    const outcome = await history.apply(batch, lease.requireHeld);
    if (outcome.kind === 'applied') this.#stats.batchesApplied += 1;
    if (outcome.kind === 'outdated') this.#noteOutdated(batch);
    await live.drop(batch);
  }

  #noteOutdated({ shard }: UsageBatch): void {
    this.#stats.batchesOutdated += 1;
    this.#options.log.warn(
      { shard },
      'Redis was restored to an earlier state: usage that was moved already is not counted again',
    );
  }
}

/** Resolves early at a stop. Does not keep the process alive. */
async function pauseUntilStop(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await pause(ms, undefined, { signal, ref: false }).catch(() => {});
}
