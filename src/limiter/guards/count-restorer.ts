import type { Clock } from '../../platform/clock.ts';
import type { Random } from '../../platform/random.ts';
import { NotCounted } from '../not-counted.ts';
import type { CountedDecision, LimitSubject } from '../rate-limiter.ts';
import type { DecidedWindow, Limit, LimitScope } from '../request-limits.ts';
import type { CostDifference } from '../window-counters.ts';

/** Units of one window that a replica allowed by itself while the shared limiter was unavailable. */
export interface UncountedUnits {
  readonly keyId: string;
  readonly limit: Limit;
  /** The customer whose window it is, for a limit per customer. */
  readonly customerId: string;
  /** At least 1. */
  readonly units: number;
  /** When the window that counted them ends, as clients were informed. By the shared clock, in milliseconds since 1970. */
  readonly resetAtMs: number;
}

/** Shared counters to which units are given back after an outage, so that a window holds what was really allowed. */
export interface RestorableCounters {
  /**
   * Adds the units to the open window, or opens one that ends just before theirs; does nothing for a deleted key. Calls with the same
   * operation id within ten minutes add them once. Rejects with `NotCounted` if this call certainly added nothing, and with
   * `StoreUnavailable` if it may have.
   */
  restore(uncounted: UncountedUnits, operationId: string): Promise<void>;
}

/**
 * Most windows that wait, each with those that overlap it. Units of further windows are not given back. Windows of customers have places
 * apart from those of keys, because one key may have any number of made-up customers.
 */
const MAX_WINDOWS: Readonly<Record<LimitScope, number>> = { key: 100_000, customer: 10_000 };
/** Windows given back together. */
const CHUNK_SIZE = 200;
/** Pause before an attempt that no decision starts. Milliseconds. */
const RETRY_MS = 500;
/** How long units that may have been added are sent again: half as long as `RestorableCounters` remember operations. Milliseconds. */
const UNCERTAIN_FOR_MS = 300_000;

interface Uncounted extends UncountedUnits {
  /** Changed in place, because `note` runs for each request of an outage. */
  units: number;
}

/** Units that are sent to the shared counter. A retry sends the same units with the same id, so that they are not added twice. */
interface Sent {
  readonly uncounted: Uncounted;
  readonly operationId: string;
  /**
   * Until when units that may have been added are sent again; undefined if they certainly were not added. By the shared clock, in
   * milliseconds since 1970.
   */
  readonly uncertainUntilMs: number | undefined;
}

/** What `CountRestorer` needs. */
export interface CountRestorerOptions {
  readonly counters: RestorableCounters;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Remembers the units that a replica allowed by itself during an outage, and adds them to the shared counters once the store responds
 * again: at once when a decision says so, else within a second. Each unit is added at most once. Units of windows that have ended are dropped.
 */
export class CountRestorer {
  readonly #options: CountRestorerOptions;
  /**
   * By name. A window opened here and one that the store opened later under the same name overlap, when the store was back for too short to
   * get the units of the first.
   */
  readonly #uncounted = new Map<string, Uncounted[]>();
  /** Units that may have been added already. */
  readonly #uncertain: Sent[] = [];
  /** Units that are being given back, by the name of their window. */
  readonly #sending = new Map<string, number>();
  /** Windows that wait: names with `#uncounted` units, and each of `#uncertain`. */
  readonly #waiting: Record<LimitScope, number> = { key: 0, customer: 0 };
  #givenBack = 0;
  #dropped = 0;
  #giving: Promise<void> | undefined;
  #retry: NodeJS.Timeout | undefined;
  /** An attempt failed although the store responded: only the timer starts the next one. */
  #isPaused = false;

  constructor(options: CountRestorerOptions) {
    this.#options = options;
  }

  /** Units given back so far. */
  get givenBack(): number {
    return this.#givenBack;
  }

  /** Units that are not given back, because too many windows waited. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Windows that wait to be given back. */
  get size(): number {
    return this.#waiting.key + this.#waiting.customer;
  }

  /** Units of an open window that the shared counter lacks, as far as that is certain. */
  unitsOf({ keyId, customerId: whose }: LimitSubject, limit: Limit, nowMs: number): number {
    if (this.#uncounted.size === 0 && this.#sending.size === 0) return 0;
    const name = nameOf({ keyId, limit, customerId: limit.per === 'customer' ? whose : '' });
    let units = this.#sending.get(name) ?? 0;
    for (const noted of this.#uncounted.get(name) ?? []) if (noted.resetAtMs > nowMs) units += noted.units;
    return units;
  }

  /** Notes the cost of an allowed request for each local window that counted it. */
  note(subject: LimitSubject, { windows, nowMs }: CountedDecision): void {
    if (subject.cost === 0) return;
    for (const window of windows)
      if (!window.isExceeded) this.#add(uncountedOf(subject, window, subject.cost), nowMs);
  }

  /**
   * Adds the difference to what was noted for a request. One below 0 only reduces units that wait: what is being given back, or was, is not
   * subtracted again. Returns whether all of it is noted.
   */
  settle(difference: CostDifference, nowMs: number): boolean {
    const { windows, units } = difference;
    const areNoted = windows.map((window) => {
      const uncounted = uncountedOf(difference, window, units);
      return units > 0 ? this.#add(uncounted, nowMs) : this.#reduce(uncounted);
    });
    return areNoted.every(Boolean);
  }

  #reduce({ resetAtMs, units, ...window }: Uncounted): boolean {
    const overlapping = this.#uncounted.get(nameOf(window)) ?? [];
    const noted = overlapping.find((one) => one.resetAtMs === resetAtMs);
    if (noted === undefined) return false;
    const left = noted.units + units;
    noted.units = Math.max(left, 0);
    return left >= 0;
  }

  /** Returns whether it is noted. */
  #add(added: Uncounted, nowMs: number): boolean {
    const name = nameOf(added);
    const overlapping = this.#uncounted.get(name);
    const noted = overlapping?.find(({ resetAtMs }) => resetAtMs === added.resetAtMs);
    if (noted !== undefined) {
      noted.units += added.units;
      return true;
    }
    this.#tryLater(nowMs);
    if (overlapping === undefined) {
      const { per } = added.limit;
      if (this.#waiting[per] >= MAX_WINDOWS[per]) {
        this.#dropped += added.units;
        return false;
      }
      this.#waiting[per] += 1;
    }
    const open = overlapping?.filter(({ resetAtMs }) => resetAtMs > nowMs) ?? [];
    this.#uncounted.set(name, [...open, added]);
    return true;
  }

  /** Gives back the noted units, if any. Call it when the store responds, with the store's time. Never rejects. */
  async giveBack(nowMs: number): Promise<void> {
    // Every shared decision calls this.
    if (!this.#isPaused) this.#attempt(nowMs, { wasCalled: true });
    await this.#giving;
  }

  /** Gives back the units that are left, without a further attempt. Resolves with the number of those that could not be. Never rejects. */
  async stop(nowMs: number): Promise<number> {
    await this.#giving;
    this.#isPaused = false;
    await this.giveBack(nowMs);
    clearTimeout(this.#retry);
    const left = [...this.#uncounted.values()]
      .flat()
      .concat(this.#uncertain.map(({ uncounted }) => uncounted));
    return left.reduce((sum, { units }) => sum + units, 0);
  }

  #attempt(nowMs: number, { wasCalled }: { readonly wasCalled: boolean }): void {
    if (this.#giving !== undefined || this.size === 0) return;
    clearTimeout(this.#retry);
    this.#retry = undefined;
    const { clock } = this.#options;
    const startedAt = clock.monotonicMs();
    const now = () => nowMs + clock.monotonicMs() - startedAt;
    this.#giving = this.#giveAll(now).finally(() => {
      this.#giving = undefined;
      this.#isPaused = wasCalled && this.size > 0;
      if (this.size > 0) this.#tryLater(now());
    });
  }

  /** Ends early when nothing of a chunk was added. The next attempt begins with the others. */
  async #giveAll(now: () => number): Promise<void> {
    for (let left = this.size; left > 0; left -= CHUNK_SIZE) {
      const chunk = this.#takeChunk(now());
      for (const { uncounted } of chunk) {
        const name = nameOf(uncounted);
        this.#sending.set(name, (this.#sending.get(name) ?? 0) + uncounted.units);
      }
      const areAdded = await Promise.all(chunk.map((one) => this.#restore(one, now)));
      this.#sending.clear();
      if (chunk.length > 0 && !areAdded.some(Boolean)) return;
    }
  }

  /** Takes the units that have waited longest, and returns those that can still be given back. */
  #takeChunk(nowMs: number): readonly Sent[] {
    // Not all: others must not wait for what fails each time.
    const uncertain = this.#uncertain.splice(0, CHUNK_SIZE / 2);
    for (const { uncounted } of uncertain) this.#waiting[uncounted.limit.per] -= 1;
    const certain: Sent[] = [];
    for (const [name, overlapping] of this.#uncounted) {
      if (uncertain.length + certain.length >= CHUNK_SIZE) break;
      this.#uncounted.delete(name);
      if (overlapping[0] !== undefined) this.#waiting[overlapping[0].limit.per] -= 1;
      for (const uncounted of overlapping) {
        const operationId = `uncounted-${this.#options.random.bytes(16).toString('base64url')}`;
        certain.push({ uncounted, operationId, uncertainUntilMs: undefined });
      }
    }
    return [...uncertain, ...certain].filter(
      ({ uncounted: { resetAtMs, units }, uncertainUntilMs = nowMs + 1 }) =>
        units > 0 && resetAtMs > nowMs && uncertainUntilMs > nowMs,
    );
  }

  /** Resolves with false if the units are not known to be added, and keeps them. */
  async #restore(sent: Sent, now: () => number): Promise<boolean> {
    const { keyId, limit, customerId, units, resetAtMs } = sent.uncounted;
    const sentAtMs = now();
    if (resetAtMs <= sentAtMs) return true;
    try {
      await this.#options.counters.restore({ keyId, limit, customerId, units, resetAtMs }, sent.operationId);
      this.#givenBack += units;
      return true;
    } catch (error) {
      const isUncertain = sent.uncertainUntilMs === undefined && !(error instanceof NotCounted);
      this.#keep(isUncertain ? { ...sent, uncertainUntilMs: sentAtMs + UNCERTAIN_FOR_MS } : sent, now());
      return false;
    }
  }

  #keep(sent: Sent, nowMs: number): void {
    if (sent.uncertainUntilMs === undefined) {
      this.#add(sent.uncounted, nowMs);
      return;
    }
    this.#uncertain.push(sent);
    this.#waiting[sent.uncounted.limit.per] += 1;
  }

  /** Starts an attempt after a pause, unless one is in progress or will be. */
  #tryLater(nowMs: number): void {
    if (this.#giving !== undefined || this.#retry !== undefined) return;
    const { clock } = this.#options;
    const startedAt = clock.monotonicMs();
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#attempt(nowMs + clock.monotonicMs() - startedAt, { wasCalled: this.#isPaused });
    }, RETRY_MS).unref();
  }
}

function uncountedOf(
  { keyId, customerId: whose }: Pick<LimitSubject, 'keyId' | 'customerId'>,
  { limit, resetAtMs }: DecidedWindow,
  units: number,
): Uncounted {
  return { keyId, limit, customerId: limit.per === 'customer' ? whose : '', resetAtMs, units };
}

function nameOf({
  keyId,
  limit,
  customerId,
}: Pick<UncountedUnits, 'keyId' | 'limit' | 'customerId'>): string {
  return `${keyId} ${limit.windowName} ${customerId}`;
}
