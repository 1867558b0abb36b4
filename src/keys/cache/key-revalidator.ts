import type { RecordVersion, RetiredKey } from '../../limiter/record-versions.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { KeyRepository, OutdatedKey } from '../key-repository.ts';

/** What the revalidator needs. */
export interface KeyRevalidatorOptions {
  readonly cache: { readonly takeActive: () => readonly { readonly snapshot: RecordVersion }[] };
  readonly repository: Pick<KeyRepository, 'findOutdated'>;
  readonly versions: {
    retire(keys: readonly RetiredKey[]): Promise<unknown>;
    withdraw(outdated: RecordVersion): Promise<unknown>;
  };
  readonly clock: Clock;
  readonly log: Logger;
  /** Copies that are in use without further requests: those of upgraded connections and long responses. */
  readonly held: () => readonly RecordVersion[];
  /** Called with each key whose copy is outdated, to drop the copy. */
  readonly onOutdated: (keyId: string) => void;
}

/** From the start of one check to the start of the next. Milliseconds. */
const INTERVAL_MS = 3000;
/** The interval after the shared versions may have been lost, and the shortest pause after a check. Milliseconds. */
const SHORTEST_INTERVAL_MS = 250;
/** Copies in one query. */
const BATCH = 1000;

/**
 * Compares the copies of keys that are in use with the record store, every three seconds and many with one query. The shared versions make
 * a change take effect with the next request, but they live in a store that can lose acknowledged writes: in a failover, a network
 * partition, a restart with older data. Even then an outdated copy is not used for longer than a few seconds, and an outdated shared
 * version is withdrawn.
 */
export class KeyRevalidator {
  readonly #options: KeyRevalidatorOptions;
  #timer: NodeJS.Timeout | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #isWanted = false;
  #isStopped = false;
  #checked = 0;
  #outdated = 0;

  constructor(options: KeyRevalidatorOptions) {
    this.#options = options;
  }

  /** Copies that were compared with the record store, since the start. */
  get checked(): number {
    return this.#checked;
  }

  /** How many of these copies were outdated, including those of changes that were still being made. */
  get outdated(): number {
    return this.#outdated;
  }

  /** Checks from now on, until `stop`. */
  start(): void {
    this.#wakeIn(INTERVAL_MS);
  }

  /** To be called when the shared versions may have been lost: checks at once, but not more often than four times a second. */
  checkSoon(): void {
    this.#isWanted = true;
    if (this.#running === undefined) this.#wakeIn(this.#pauseMs(SHORTEST_INTERVAL_MS));
  }

  /** Resolves when no query runs any more. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  /** Milliseconds until the next check may start. */
  #pauseMs(intervalMs: number): number {
    const sinceMs = this.#options.clock.monotonicMs() - this.#startedAtMs;
    return Math.max(intervalMs - sinceMs, 0);
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#run().finally(() => this.#plan());
    }, ms).unref();
  }

  async #run(): Promise<void> {
    this.#isWanted = false;
    this.#startedAtMs = this.#options.clock.monotonicMs();
    try {
      const copies = [
        ...this.#options.cache.takeActive().map(({ snapshot }) => snapshot),
        ...this.#options.held(),
      ];
      for (let from = 0; from < copies.length; from += BATCH)
        await this.#check(copies.slice(from, from + BATCH));
    } catch (error) {
      // Expected while the record store is unavailable, which is logged elsewhere.
      this.#options.log.debug({ err: error }, 'cached keys could not be checked');
    }
  }

  /** Ends a check, and starts the time to the next one. */
  #plan(): void {
    this.#running = undefined;
    const pauseMs = this.#pauseMs(this.#isWanted ? SHORTEST_INTERVAL_MS : INTERVAL_MS);
    this.#wakeIn(Math.max(pauseMs, SHORTEST_INTERVAL_MS));
  }

  async #check(copies: readonly RecordVersion[]): Promise<void> {
    const outdated = await this.#options.repository.findOutdated(copies);
    this.#checked += copies.length;
    this.#outdated += outdated.length;
    for (const key of outdated) {
      this.#options.onOutdated(key.keyId);
      void this.#repair(key);
    }
  }

  /** Best effort: the next request reads the key anyway, and a copy that was read for a request replaces an older shared version. */
  async #repair({ keyId, version, isGone }: OutdatedKey): Promise<void> {
    const { versions, log } = this.#options;
    try {
      if (isGone) await versions.retire([{ keyId }]);
      else await versions.withdraw({ keyId, version });
    } catch (error) {
      log.debug({ err: error, keyId }, 'the shared version of a changed key could not be withdrawn');
    }
  }
}
