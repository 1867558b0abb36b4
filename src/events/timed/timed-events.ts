import type { OutboxEvent } from '../outbox-event.ts';
import { EXPIRY_NOTICES, type ExpiringKey, type ExpiryNotice, expiryEvent } from './expiry-events.ts';
import { type UnsentUsage, usageHourEvent } from './usage-hour-events.ts';

/** Who gets events. */
export interface Subscribers {
  /** Whether a webhook or a stream gets any. */
  readonly any: boolean;
  /** Whether one gets events of usage now. */
  readonly usage: boolean;
}

/**
 * Where events come from that time brings about. Each method that makes events writes at most a page of them, in one transaction with
 * what it notes as done, and resolves with whether there may be more. Every method rejects with `StoreUnavailable`.
 */
export interface TimedEventStore {
  subscribers(): Promise<Subscribers>;
  /** Makes events for keys of which a notice has become due since the last call. After `forget`, only of those that become due later. */
  passExpiries(
    notice: ExpiryNotice,
    make: (keys: readonly ExpiringKey[]) => readonly OutboxEvent[],
  ): Promise<boolean>;
  /** Makes events of the usage of the hours before this instant, and removes it from what is unsent. None if nothing gets it by now. */
  passUsage(
    beforeMs: number,
    make: (usage: readonly UnsentUsage[]) => readonly OutboxEvent[],
  ): Promise<boolean>;
  /** Forgets up to where keys were looked at, if nothing hears of them. */
  forgetExpiries(): Promise<void>;
  /** Removes a page of usage that is kept for no webhook and no stream any more. Resolves with whether there may be more. */
  forgetUsage(): Promise<boolean>;
}

/** What `TimedEvents` is built from. */
export interface TimedEventsOptions {
  readonly store: TimedEventStore;
  /** Before this instant all usage is in Postgres, in milliseconds since 1970; undefined if that is not known. */
  readonly usageCompleteUntilMs: () => Promise<number | undefined>;
  readonly makeId: () => string;
  /** Masks the secrets in a name, an external id or a tag, as the audit log does. */
  readonly mask: (text: string) => string;
}

/** What a run left: perhaps more to make, nothing, or nothing because nothing is heard. */
export type TimedResult = 'more' | 'done' | 'unheard';

/** Pages in one run, which are made or forgotten: deliveries go on between two runs. */
const PAGES_IN_A_RUN = 20;

/** Makes the events that no change brings about: keys that expire, and the usage of hours that are complete. */
export class TimedEvents {
  readonly #options: TimedEventsOptions;
  #isStopped = false;

  constructor(options: TimedEventsOptions) {
    this.#options = options;
  }

  /** Makes the events that are due. Rejects with `StoreUnavailable`. */
  async run(): Promise<TimedResult> {
    const { store } = this.#options;
    const subscribers = await store.subscribers();
    const left = { pages: PAGES_IN_A_RUN };
    if (subscribers.any) await this.#passExpiries(left);
    else await store.forgetExpiries();
    if (subscribers.usage) await this.#passUsage(left);
    else while (this.#goesOn(left) && (await store.forgetUsage())) left.pages -= 1;
    if (left.pages === 0) return 'more';
    return subscribers.any ? 'done' : 'unheard';
  }

  /** Ends a run after its present page. */
  stop(): void {
    this.#isStopped = true;
  }

  #goesOn({ pages }: { readonly pages: number }): boolean {
    return pages > 0 && !this.#isStopped;
  }

  async #passExpiries(left: { pages: number }): Promise<void> {
    const { store, mask } = this.#options;
    for (const notice of EXPIRY_NOTICES) {
      const make = (keys: readonly ExpiringKey[]) => keys.map((key) => expiryEvent(notice, key, mask));
      while (this.#goesOn(left) && (await store.passExpiries(notice, make))) left.pages -= 1;
    }
  }

  async #passUsage(left: { pages: number }): Promise<void> {
    const { store, usageCompleteUntilMs, makeId } = this.#options;
    const completeUntilMs = await usageCompleteUntilMs();
    if (completeUntilMs === undefined) return;
    const make = (page: readonly UnsentUsage[]) => page.map((usage) => usageHourEvent(usage, makeId));
    while (this.#goesOn(left) && (await store.passUsage(completeUntilMs, make))) left.pages -= 1;
  }
}
