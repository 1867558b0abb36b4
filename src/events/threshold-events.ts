import type { PassedThreshold } from '../limiter/window-counters.ts';
import type { Logger } from '../platform/logger.ts';
import { isoSecondsUp } from '../platform/timestamps.ts';
import type { EventType } from './event-types.ts';
import type { OutboxEvent } from './outbox-event.ts';

/** An event about a key, before the tags of the key are known. */
export type KeyEvent = Omit<OutboxEvent, 'tags'>;

/** Where events about keys go that no audited change makes. Rejects with `StoreUnavailable`. */
export interface KeyOutbox {
  /** Writes events of a type, if any are heard, with the tags that their keys have now. */
  append(type: EventType, events: readonly KeyEvent[]): Promise<void>;
  /** The same after an `append` that failed: events that it has written all the same are not written again. */
  appendMissing(type: EventType, events: readonly KeyEvent[]): Promise<void>;
}

/** What `ThresholdEvents` is built from. */
export interface ThresholdEventsOptions {
  readonly outbox: KeyOutbox;
  readonly makeId: () => string;
  /** Masks credentials in a customer's id: a client may put its key anywhere. */
  readonly mask: (customerId: string) => string;
  readonly log: Logger;
}

const TYPE: EventType = 'tollgate.limit.threshold';
/** How long an event waits for others that are written with it. Milliseconds. */
const FLUSH_MS = 250;
/** The pause after a failure. Milliseconds. */
const RETRY_MS = 2000;
/** Events that are written in one transaction. */
const AT_ONCE = 500;
/** The most events that wait for Postgres; further ones are dropped. */
const MOST_WAITING = 10_000;

/** Writes an event for each threshold that a window passes, in batches and later than the request: no request waits for it. */
export class ThresholdEvents {
  readonly #options: ThresholdEventsOptions;
  readonly #waiting: KeyEvent[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<boolean> | undefined;
  #hasFailed = false;
  #isStopped = false;
  #dropped = 0;

  constructor(options: ThresholdEventsOptions) {
    this.#options = options;
  }

  /** Events that were never written, counted from the start of the process. */
  get dropped(): number {
    return this.#dropped;
  }

  add(passed: PassedThreshold): void {
    if (this.#isStopped || this.#waiting.length >= MOST_WAITING) {
      this.drop();
      return;
    }
    this.#waiting.push(thresholdEvent(passed, this.#options));
    this.#schedule(FLUSH_MS);
  }

  /** Counts an event that could not be made. */
  drop(): void {
    this.#dropped += 1;
  }

  /** Writes what waits. Resolves when nothing is being written any more; what Postgres does not take then is dropped. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    // A store that has just failed may hang: a second try would take as long once more.
    let isWritten = (await this.#writing) ?? true;
    while (isWritten && this.#waiting.length > 0) isWritten = await this.#write();
    this.#dropped += this.#waiting.length;
  }

  #schedule(pauseMs: number): void {
    if (this.#isStopped || this.#timer !== undefined || this.#writing !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#write();
      void this.#writing.then((isWritten) => {
        this.#writing = undefined;
        if (this.#waiting.length > 0) this.#schedule(isWritten ? 0 : RETRY_MS);
      });
    }, pauseMs).unref();
  }

  /** Writes the events that wait longest. Resolves with whether that succeeded. */
  async #write(): Promise<boolean> {
    const { outbox, log } = this.#options;
    const events = this.#waiting.slice(0, AT_ONCE);
    try {
      if (this.#hasFailed) await outbox.appendMissing(TYPE, events);
      else await outbox.append(TYPE, events);
    } catch (err) {
      if (!this.#hasFailed) log.warn({ err }, 'events of thresholds could not be written; it is tried again');
      this.#hasFailed = true;
      return false;
    }
    this.#hasFailed = false;
    this.#waiting.splice(0, events.length);
    return true;
  }
}

function thresholdEvent(
  passed: PassedThreshold,
  { makeId, mask }: Pick<ThresholdEventsOptions, 'makeId' | 'mask'>,
): KeyEvent {
  const { keyId, limit, customerId, threshold, quota, used, resetAtMs, atMs } = passed;
  const data = {
    limitId: limit.id,
    ...{ threshold, limit: quota, used },
    resetTime: isoSecondsUp(resetAtMs),
    ...(customerId !== undefined && { customerId: mask(customerId) }),
  };
  return { id: `threshold_${makeId()}`, type: TYPE, subject: keyId, atMs, data: JSON.stringify(data) };
}
