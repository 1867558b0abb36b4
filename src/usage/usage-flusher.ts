import { StoreUnavailable } from '../errors.ts';
import type { Logger } from '../platform/logger.ts';
import type { OnFlushStep } from './flush-steps.ts';
import type { ClaimOutcome, LiveUsage, UsageBatch, UsageClaim } from './live-usage.ts';
import type { ApplyOutcome, UsageHistory } from './usage-history.ts';

/** Keys whose batches share a transaction. */
const KEYS_AT_ONCE = 128;
/** Transactions of one replica at a time. */
const LANES = 2;

/** What the flusher did, since the process started. Plain numbers, for metrics. */
export interface FlusherStats {
  /** Batches that this replica added to the history. */
  readonly batchesApplied: number;
  /** Batches that it has taken and not yet removed. */
  readonly batchesPending: number;
  /** Requests of deleted keys, which were dropped. */
  readonly recordsDropped: number;
  /** Rounds that ended early because a store did not answer or refused. */
  readonly failures: number;
  /** By how many milliseconds the most overdue key of the last round was late. */
  readonly lagMs: number;
}

/** What the flusher needs. */
export interface FlusherOptions {
  readonly live: LiveUsage;
  readonly history: UsageHistory;
  readonly log: Logger;
  /** For tests. */
  readonly onStep?: OnFlushStep;
}

/**
 * Moves counts from the live usage to the history. Every replica runs one and none leads: what one of them leaves undone, whichever step
 * it died at, another does when the lease has run out.
 */
export class UsageFlusher {
  readonly #live: LiveUsage;
  readonly #history: UsageHistory;
  readonly #log: Logger;
  readonly #onStep: OnFlushStep;
  #stats = { batchesApplied: 0, batchesPending: 0, recordsDropped: 0, failures: 0, lagMs: 0 };
  #isStopping = false;
  #flushing: Promise<boolean> | undefined;

  constructor({ live, history, log, onStep = () => {} }: FlusherOptions) {
    this.#live = live;
    this.#history = history;
    this.#log = log;
    this.#onStep = onStep;
  }

  get stats(): FlusherStats {
    return { ...this.#stats };
  }

  /** Moves all that is due. Resolves with false when something failed and is left for later. Never rejects. */
  flush(): Promise<boolean> {
    this.#flushing ??= this.#flushAll().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Ends a round under way after the batches that it has in hand. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#flushing;
  }

  async #flushAll(): Promise<boolean> {
    this.#isStopping = false;
    this.#stats.lagMs = 0;
    const lanes = await Promise.all(Array.from({ length: LANES }, () => this.#flushLane()));
    return lanes.every((isDone) => isDone);
  }

  async #flushLane(): Promise<boolean> {
    while (!this.#isStopping) {
      let claims: readonly UsageClaim[] = [];
      try {
        claims = await this.#live.claim(KEYS_AT_ONCE);
        if (claims.length === 0) return true;
        this.#onStep('claimed');
        await this.#move(claims);
      } catch (error) {
        await this.#giveUp(claims, error);
        return false;
      }
    }
    return true;
  }

  async #move(claims: readonly UsageClaim[]): Promise<void> {
    this.#stats.lagMs = Math.max(this.#stats.lagMs, ...claims.map((claim) => claim.overdueMs));
    const taken = await this.#live.takeBatches(claims.map((claim) => claim.keyId));
    const batches = taken.filter((batch) => batch !== undefined);
    this.#onStep('taken');
    const moved = new Set(batches.length > 0 ? await this.#moveBatches(batches) : []);
    await this.#live.settle(claims.map((claim, index) => [claim, outcomeOf(taken[index], moved)] as const));
    this.#onStep('settled');
  }

  /** Resolves with the batches that are in the history, or whose key is gone. */
  async #moveBatches(batches: readonly UsageBatch[]): Promise<readonly UsageBatch[]> {
    this.#stats.batchesPending += batches.length;
    try {
      const moved: UsageBatch[] = [];
      for (const [batch, outcome] of await this.#apply(batches)) {
        this.#count(batch, outcome);
        // Still waiting under an id that is too low, it was never added; gone, somebody else had it added.
        if (outcome.kind === 'overtaken') await this.#live.renumber(batch, outcome.lastId);
        else moved.push(batch);
      }
      await this.#live.dropBatches(moved);
      this.#onStep('dropped');
      return moved;
    } finally {
      this.#stats.batchesPending -= batches.length;
    }
  }

  /** All at once; where the history refuses that, one by one, so that a batch that it can't take does not hold up the others. */
  async #apply(batches: readonly UsageBatch[]): Promise<readonly (readonly [UsageBatch, ApplyOutcome])[]> {
    try {
      const outcomes = await this.#history.apply(batches);
      return batches.flatMap((batch, index) => {
        const outcome = outcomes[index];
        return outcome === undefined ? [] : [[batch, outcome] as const];
      });
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (batches.length > 1) return (await Promise.all(batches.map((batch) => this.#apply([batch])))).flat();
      this.#stats.failures += 1;
      this.#log.error({ err: error, keyId: batches[0]?.keyId }, 'a batch of usage was refused; it is kept');
      return [];
    }
  }

  #count(batch: UsageBatch, outcome: ApplyOutcome): void {
    if (outcome.kind === 'applied') this.#stats.batchesApplied += 1;
    if (outcome.kind === 'key_gone') this.#stats.recordsDropped += batch.sums.totals.requests;
  }

  async #giveUp(claims: readonly UsageClaim[], error: unknown): Promise<void> {
    this.#stats.failures += 1;
    this.#log.warn(
      { err: error, keys: claims.length },
      'usage could not be moved; it is kept and tried again',
    );
    try {
      await this.#live.settle(claims.map((claim) => [claim, 'failed']));
    } catch {
      // Then the leases run out by themselves.
    }
  }
}

function outcomeOf(batch: UsageBatch | undefined, moved: ReadonlySet<UsageBatch>): ClaimOutcome {
  if (batch === undefined) return 'idle';
  return moved.has(batch) ? 'moved' : 'failed';
}
