import type { Clock } from '../platform/clock.ts';
import { isoSeconds } from '../platform/timestamps.ts';
import type { EventType } from './event-types.ts';
import type { OutboxEvent } from './outbox-event.ts';

/** Where events go that no audited change makes. Rejects with `StoreUnavailable`. */
export interface Outbox {
  /** Writes events, if any are heard. */
  append(events: readonly OutboxEvent[]): Promise<void>;
  /** The same after an `append` that failed: events that it has written all the same are not written again. */
  appendMissing(events: readonly OutboxEvent[]): Promise<void>;
}

/** What `DegradationEvents` is built from. */
export interface DegradationEventsOptions {
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly makeId: () => string;
  /** As the system report names it. */
  readonly replicaId: string;
  /** How limits are decided without Redis: `LIMITER_FAILURE_MODE`. */
  readonly mode: string;
}

/** How long Redis has to decide again before the replica has recovered: it may come and go. Milliseconds. */
const RECOVERED_AFTER_MS = 10_000;
/** The pause between attempts to write events: Postgres may be away as well. Milliseconds. */
const RETRY_MS = 5000;
/** The most events that wait for Postgres; further changes are dropped in pairs. */
const MOST_WAITING = 20;

/** Makes an event when this replica begins to decide limits without Redis, and one when Redis has decided again for a while. */
export class DegradationEvents {
  readonly #options: DegradationEventsOptions;
  #waiting: OutboxEvent[] = [];
  /** Undefined while Redis decides. Milliseconds since 1970. */
  #sinceMs: number | undefined;
  #recovery: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #hasFailed = false;
  #isStopped = false;

  constructor(options: DegradationEventsOptions) {
    this.#options = options;
  }

  /** The replica decides without Redis from now on. */
  begin(): void {
    clearTimeout(this.#recovery);
    this.#recovery = undefined;
    if (this.#sinceMs !== undefined || this.#isStopped) return;
    const nowMs = this.#options.clock.nowMs();
    this.#sinceMs = nowMs;
    this.#add('tollgate.gateway.degraded', nowMs, nowMs);
  }

  /** Redis decides from now on. */
  end(): void {
    const sinceMs = this.#sinceMs;
    if (sinceMs === undefined || this.#recovery !== undefined || this.#isStopped) return;
    const endedMs = this.#options.clock.nowMs();
    this.#recovery = setTimeout(() => {
      this.#recovery = undefined;
      this.#sinceMs = undefined;
      this.#add('tollgate.gateway.recovered', sinceMs, endedMs);
    }, RECOVERED_AFTER_MS).unref();
  }

  /** Resolves when nothing is being written any more. What waits for Postgres is lost. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#recovery);
    clearTimeout(this.#retry);
    await this.#writing;
  }

  #add(type: EventType, sinceMs: number, atMs: number): void {
    const { makeId, replicaId, mode } = this.#options;
    const data = JSON.stringify({ since: isoSeconds(sinceMs), mode });
    if (this.#waiting.length >= MOST_WAITING) this.#waiting.splice(-2);
    this.#waiting.push({ id: makeId(), type, subject: replicaId, atMs, tags: [], data });
    this.#write();
  }

  #write(): void {
    if (this.#isStopped || this.#writing !== undefined || this.#waiting.length === 0) return;
    clearTimeout(this.#retry);
    const events = [...this.#waiting];
    const { outbox } = this.#options;
    const written = this.#hasFailed ? outbox.appendMissing(events) : outbox.append(events);
    this.#writing = written.then(
      () => {
        this.#writing = undefined;
        this.#hasFailed = false;
        this.#waiting = this.#waiting.filter((event) => !events.includes(event));
        this.#write();
      },
      () => {
        this.#writing = undefined;
        this.#hasFailed = true;
        this.#retry = setTimeout(() => this.#write(), RETRY_MS).unref();
      },
    );
  }
}
