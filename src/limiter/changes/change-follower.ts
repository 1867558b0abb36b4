import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { ChangedRecord, ChangesRead, RecordChanges } from './record-changes.ts';

/** What a follower needs. */
export interface ChangeFollowerOptions {
  readonly changes: Pick<RecordChanges, 'read'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with what was changed. All changes until `untilMs`, by the monotonic clock, are then known. */
  readonly onRead: (changed: readonly ChangedRecord[], untilMs: number) => void;
  /** Called again and again while the record store does not respond although this process runs. */
  readonly onSilence: (nowMs: number) => void;
  /** Called when changes may have been missed, before `onRead`. */
  readonly onMissed: () => void;
  /** Called with each read, after `onRead`. */
  readonly onCounted: (counted: Pick<ChangesRead, 'claimable' | 'waiting'>) => void;
}

/** From the start of one read to the start of the next. Milliseconds. */
const INTERVAL_MS = 1000;
const BEAT_MS = 250;
/** Between two beats: the process stood still. Milliseconds. */
const STOOD_STILL_MS = 1000;
/** The record store counts as silent when reads have failed, or have got no response, for this time in which the process ran. Milliseconds. */
const FAILED_FOR_MS = 500;
const NO_RESPONSE_FOR_MS = 1500;

/**
 * Reads once a second which records were changed, whichever way the change takes otherwise: so it is in force here within `APPLIES_WITHIN_S`,
 * with the shared versions or without.
 *
 * A pause of the process is no silence of the store: after it nothing counts as known until a read has succeeded, or the store has been
 * silent for a while.
 */
export class ChangeFollower {
  readonly #options: ChangeFollowerOptions;
  #timer: NodeJS.Timeout | undefined;
  #position: string | undefined;
  #running: Promise<void> | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #beatAtMs = 0;
  /** For how long the process has run without a response; 0 while there is none due. */
  #silentMs = 0;
  #hasFailed = false;

  constructor(options: ChangeFollowerOptions) {
    this.#options = options;
  }

  /** Follows the changes from now on, until `stop`. */
  start(): void {
    this.#options.onRead([], Number.NEGATIVE_INFINITY);
    this.#beatAtMs = this.#options.clock.monotonicMs();
    this.#timer = setInterval(() => this.#beat(), BEAT_MS).unref();
    this.#beat();
  }

  /** Resolves when no read runs any more. From then on copies are not held to be followed. Never rejects. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    this.#options.onRead([], Number.POSITIVE_INFINITY);
  }

  #beat(): void {
    const nowMs = this.#options.clock.monotonicMs();
    const sinceMs = nowMs - this.#beatAtMs;
    this.#beatAtMs = nowMs;
    if (sinceMs >= STOOD_STILL_MS) this.#silentMs = 0;
    else if (this.#running !== undefined || this.#hasFailed) this.#silentMs += sinceMs;
    if (this.#silentMs >= (this.#hasFailed ? FAILED_FOR_MS : NO_RESPONSE_FOR_MS))
      this.#options.onSilence(nowMs);
    if (this.#running !== undefined || nowMs - this.#startedAtMs < INTERVAL_MS) return;
    this.#startedAtMs = nowMs;
    this.#running = this.#read(nowMs).finally(() => {
      this.#running = undefined;
    });
  }

  async #read(startedAtMs: number): Promise<void> {
    const { changes, log, onRead, onMissed, onCounted } = this.#options;
    try {
      const { position, changed, mayMiss, ...counted } = await changes.read(this.#position);
      this.#position = position;
      this.#hasFailed = false;
      this.#silentMs = 0;
      if (mayMiss) onMissed();
      onRead(changed, startedAtMs);
      onCounted(counted);
    } catch (error) {
      this.#hasFailed = true;
      // Expected while the record store is unavailable, which is logged elsewhere.
      log.debug({ err: error }, 'changes of records could not be read');
    }
  }
}
