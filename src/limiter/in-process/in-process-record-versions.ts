import type { Clock } from '../../platform/clock.ts';
import {
  type ChangeFeed,
  MARK_KEPT_MS,
  type RecordVersion,
  type RetiredKey,
  type SharedVersions,
  VERSION_KEPT_MS,
} from '../record-versions.ts';
import { MARK, OVERLAPPING_MARK, TOMBSTONE, type WindowTable } from './window-table.ts';

/** The shared versions of one process, by the rules of the scripts in Redis. It is also the change feed, which misses nothing. */
export class InProcessRecordVersions implements SharedVersions, ChangeFeed {
  readonly #table: WindowTable;
  readonly #clock: Clock;
  readonly #changed: ((keyId: string) => void)[] = [];

  constructor(table: WindowTable, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  async markStale(keyIds: readonly string[]): Promise<void> {
    const nowMs = this.#clock.nowMs();
    for (const keyId of keyIds) {
      const shared = this.#table.version(keyId, nowMs);
      if (shared === TOMBSTONE) continue;
      const isMarked = shared === MARK || shared === OVERLAPPING_MARK;
      this.#store(keyId, isMarked ? OVERLAPPING_MARK : MARK, MARK_KEPT_MS);
    }
  }

  async publishVersion(versions: readonly RecordVersion[]): Promise<void> {
    for (const { keyId, version } of versions) {
      this.#publishOne(keyId, version);
      this.#publish(keyId);
    }
  }

  async retire(keys: readonly RetiredKey[]): Promise<void> {
    for (const { keyId } of keys) {
      this.#store(keyId, TOMBSTONE, VERSION_KEPT_MS);
      this.#table.closeAll(keyId);
      this.#publish(keyId);
    }
  }

  async withdraw({ keyId, version }: RecordVersion): Promise<void> {
    const nowMs = this.#clock.nowMs();
    if (this.#table.version(keyId, nowMs) !== version) return;
    this.#table.setVersion(keyId, { version, expiresAtMs: nowMs }, nowMs);
    this.#publish(keyId);
  }

  onChange(changed: (keyId: string) => void): void {
    this.#changed.push(changed);
  }

  /** Never called: nothing gets lost within a process. */
  onReset(): void {}

  /** If changes overlapped, it is unknown which one wrote last: then the mark stays for its full time. */
  #publishOne(keyId: string, version: string): void {
    const shared = this.#table.version(keyId, this.#clock.nowMs());
    if (shared === TOMBSTONE || shared === version) return;
    if (shared === undefined || shared === MARK) this.#store(keyId, version, VERSION_KEPT_MS);
    else this.#store(keyId, OVERLAPPING_MARK, MARK_KEPT_MS);
  }

  #store(keyId: string, version: string, keptMs: number): void {
    const nowMs = this.#clock.nowMs();
    this.#table.setVersion(keyId, { version, expiresAtMs: nowMs + keptMs }, nowMs);
  }

  #publish(keyId: string): void {
    for (const changed of this.#changed) changed(keyId);
  }
}
