import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { LAST_QUERY_BY_MS } from '../../platform/process/shutdown-order.ts';
import type { RepublishedVersions } from '../record-versions.ts';
import type { ChangedRecord, ClaimedChange, RecordChanges } from './record-changes.ts';

/** What a publisher needs. */
export interface ChangePublisherOptions {
  readonly changes: RecordChanges;
  readonly versions: RepublishedVersions;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when a change was published: the shared versions respond. */
  readonly onPublished: () => void;
}

/** Changes that are claimed together. */
const CLAIMED_AT_ONCE = 500;
/** Pauses after attempts in which nothing could be published. Milliseconds. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8000;
/** How often notes of published changes are written. Milliseconds. */
const NOTED_EVERY_MS = 250;
/** Most notes that wait. The changes of further ones are published once more. */
const MAX_NOTED = 50_000;
/** A note that is older is dropped: the shared versions may have lost the change since. Milliseconds. */
const NOTE_LASTS_MS = 3000;
/** Replicas that lose and find the shared versions at the same time have changes repeated once within this time. Milliseconds. */
const REPEATED_WITHIN_MS = 3000;

interface Note extends ChangedRecord {
  readonly atMs: number;
}

/**
 * Publishes changes to the shared versions that the replica which made them could not publish, or did not live to publish; any replica does
 * it. What the shared versions have is noted in the record store, and only then. When they may have lost changes, those of the last hour are
 * published again.
 */
export class ChangePublisher {
  readonly #options: ChangePublisherOptions;
  readonly #notes = new Map<string, Note>();
  #timer: NodeJS.Timeout | undefined;
  #publishing: Promise<void> | undefined;
  #writing: Promise<void> | undefined;
  #pauseMs = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  /** Since when changes are to be repeated, and when that is tried next, by the monotonic clock; undefined if they are not. */
  #repeat: { readonly sinceMs: number; readonly atMs: number } | undefined;
  #isStopped = false;

  constructor(options: ChangePublisherOptions) {
    this.#options = options;
  }

  /** Writes notes from now on, until `stop`. */
  start(): void {
    this.#timer = setInterval(() => this.#beat(), NOTED_EVERY_MS).unref();
  }

  /** Writes the last notes, unless the record store takes long: changes without a note are published once more. Never rejects. */
  async stop(): Promise<void> {
    const { clock } = this.#options;
    const fromMs = clock.monotonicMs();
    this.#isStopped = true;
    clearInterval(this.#timer);
    await Promise.all([this.#publishing, this.#writing]);
    if (clock.monotonicMs() - fromMs <= LAST_QUERY_BY_MS) await this.#write();
  }

  /** Notes that the shared versions have a change. */
  note(change: ChangedRecord): void {
    const name = `${change.kind} ${change.id}`;
    if (this.#notes.size >= MAX_NOTED && !this.#notes.has(name)) return;
    this.#notes.set(name, { ...change, atMs: this.#options.clock.monotonicMs() });
  }

  /** To be called when changes can be claimed. */
  publishSoon(): void {
    if (this.#isStopped || this.#publishing !== undefined) return;
    if (this.#options.clock.monotonicMs() < this.#pausedUntilMs) return;
    this.#publishing = this.#publishAll().finally(() => {
      this.#publishing = undefined;
    });
  }

  /** To be called when the shared versions may have lost changes, or respond again. */
  repeatSoon(): void {
    this.#notes.clear();
    this.#pauseMs = 0;
    this.#pausedUntilMs = Number.NEGATIVE_INFINITY;
    const nowMs = this.#options.clock.monotonicMs();
    this.#repeat = { sinceMs: nowMs, atMs: nowMs };
  }

  #beat(): void {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  async #write(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    try {
      await this.#writeNotes(nowMs);
      await this.#repeatChanges(nowMs);
    } catch (error) {
      // Expected while the record store is unavailable. Changes without a note are published once more.
      this.#options.log.debug({ err: error }, 'published changes could not be noted');
    }
  }

  /** All replicas find the shared versions again within some seconds: most need not repeat what another has repeated since they did. */
  async #repeatChanges(nowMs: number): Promise<void> {
    const repeat = this.#repeat;
    if (repeat === undefined || nowMs < repeat.atMs) return;
    const isFirst = repeat.atMs === repeat.sinceMs;
    const isRepeated = await this.#options.changes.repeat(
      isFirst ? REPEATED_WITHIN_MS : nowMs - repeat.sinceMs,
    );
    if (this.#repeat !== repeat) return;
    this.#repeat =
      isFirst && !isRepeated ? { ...repeat, atMs: repeat.sinceMs + REPEATED_WITHIN_MS } : undefined;
  }

  async #writeNotes(nowMs: number): Promise<void> {
    if (this.#notes.size === 0) return;
    const notes = [...this.#notes.values()].filter(({ atMs }) => nowMs - atMs < NOTE_LASTS_MS);
    this.#notes.clear();
    await this.#options.changes.notePublished(notes);
  }

  async #publishAll(): Promise<void> {
    const { changes, clock, log, onPublished } = this.#options;
    try {
      for (;;) {
        // After a failure a single change is tried: other replicas may be able to publish the rest.
        const claimed = await changes.claim(this.#pauseMs > 0 ? 1 : CLAIMED_AT_ONCE);
        if (claimed.length === 0) return;
        const published = await this.#publish(claimed);
        if (published === 0) break;
        this.#pauseMs = 0;
        onPublished();
        log.info({ changes: published }, 'changes were published that Redis did not have');
        if (this.#isStopped || published < claimed.length) return;
      }
      this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
      this.#pausedUntilMs = clock.monotonicMs() + this.#pauseMs;
    } catch (error) {
      log.debug({ err: error }, 'waiting changes could not be published');
    }
  }

  /** Resolves with the number of changes that were published. */
  async #publish(claimed: readonly ClaimedChange[]): Promise<number> {
    const { changes } = this.#options;
    const keys = claimed.filter(({ kind }) => kind === 'key');
    const failed = await this.#publishKeys(keys);
    await changes.settle(keys.filter(({ id }) => !failed.has(id)));
    await changes.release(keys.filter(({ id }) => failed.has(id)));
    let published = keys.length - failed.size;
    for (const plan of claimed.filter(({ kind }) => kind === 'plan')) {
      const isPublished = await this.#publishPlan(plan);
      if (isPublished) published += 1;
      await (isPublished ? changes.settle([plan]) : changes.release([plan]));
    }
    return published;
  }

  /** Resolves with the ids of the keys that could not be published. */
  async #publishKeys(keys: readonly ClaimedChange[]): Promise<ReadonlySet<string>> {
    const { changes, versions } = this.#options;
    const ids = keys.map(({ id }) => id);
    const present = new Map(
      (await changes.versionsOf(ids)).map(({ keyId, version }) => [keyId, version] as const),
    );
    return versions.publishNewer(ids.map((keyId) => ({ keyId, version: present.get(keyId) ?? null })));
  }

  /** Publishes all keys under a plan, which may take longer than a claim lasts. Resolves with whether that succeeded. */
  async #publishPlan(plan: ClaimedChange): Promise<boolean> {
    const { changes, versions } = this.#options;
    let isWhole = await changes.renew([plan]);
    if (!isWhole) return false;
    for await (const keys of changes.versionsUnder(plan.id)) {
      const failed = await versions.publishNewer(keys);
      if (failed.size === keys.length || !(await changes.renew([plan]))) return false;
      isWhole &&= failed.size === 0;
    }
    return isWhole;
  }
}
