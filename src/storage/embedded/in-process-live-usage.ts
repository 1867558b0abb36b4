import type { Clock } from '../../platform/clock.ts';
import type {
  ClaimOutcome,
  LiveUsage,
  UsageBatch,
  UsageClaim,
  UsageWrite,
  WriteOutcome,
} from '../../usage/live-usage.ts';
import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from '../../usage/usage-names.ts';
import { addCounts, addUnder, type Counts, noUsage, type UsageSums } from '../../usage/usage-sums.ts';

/** How long late records of a deleted key are dropped here; after that the history drops them. */
const TOMBSTONE_MS = 3_600_000;

interface LiveKey {
  live: UsageBatch | undefined;
  batch: UsageBatch | undefined;
  readonly lastSequences: Map<string, number>;
  isClaimed: boolean;
}

/** Live usage of a gateway that is one process and has no Redis. What is not in the history yet ends with the process. */
export class InProcessLiveUsage implements LiveUsage {
  readonly isShared = false;
  readonly #clock: Clock;
  readonly #keys = new Map<string, LiveKey>();
  /** Deleted keys, oldest first, and until when they are remembered. */
  readonly #erased = new Map<string, number>();
  #lastId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]> {
    return writes.map((write) => this.#write(write));
  }

  async claim(limit: number): Promise<readonly UsageClaim[]> {
    const claims: UsageClaim[] = [];
    for (const [keyId, key] of this.#keys) {
      if (claims.length >= limit) break;
      if (key.isClaimed) continue;
      key.isClaimed = true;
      claims.push({ keyId, lease: '', overdueMs: 0 });
    }
    return claims;
  }

  async takeBatches(keyIds: readonly string[]): Promise<readonly (UsageBatch | undefined)[]> {
    return keyIds.map((keyId) => {
      const key = this.#keys.get(keyId);
      if (key !== undefined && key.batch === undefined) {
        key.batch = key.live;
        key.live = undefined;
      }
      return key?.batch;
    });
  }

  async dropBatches(batches: readonly UsageBatch[]): Promise<void> {
    for (const { keyId, id } of batches) {
      const key = this.#keys.get(keyId);
      if (key?.batch?.id === id) key.batch = undefined;
    }
  }

  async renumber(batch: UsageBatch, id: number): Promise<void> {
    const key = this.#keys.get(batch.keyId);
    if (key?.batch?.id !== batch.id) return;
    this.#lastId = Math.max(this.#lastId, id);
    key.batch = { ...key.batch, id: this.#nextId() };
    if (key.live !== undefined) key.live = { ...key.live, id: this.#nextId() };
  }

  async settle(outcomes: readonly (readonly [UsageClaim, ClaimOutcome])[]): Promise<void> {
    for (const [{ keyId }, outcome] of outcomes) {
      const key = this.#keys.get(keyId);
      if (key === undefined) continue;
      key.isClaimed = false;
      const isEmpty = key.live === undefined && key.batch === undefined;
      if (outcome === 'idle' && isEmpty) this.#keys.delete(keyId);
    }
  }

  async read(keyId: string): Promise<readonly UsageBatch[]> {
    const key = this.#keys.get(keyId);
    // Copied: the live counts go on being added to while the history is read.
    return [key?.batch, key?.live].flatMap((batch) => (batch === undefined ? [] : structuredClone(batch)));
  }

  async erase(keyId: string): Promise<void> {
    this.#keys.delete(keyId);
    const nowMs = this.#clock.monotonicMs();
    for (const [erased, untilMs] of this.#erased) {
      if (untilMs > nowMs) break;
      this.#erased.delete(erased);
    }
    this.#erased.delete(keyId);
    this.#erased.set(keyId, nowMs + TOMBSTONE_MS);
  }

  #write({ keyId, writer, sequence, sums }: UsageWrite): WriteOutcome {
    if ((this.#erased.get(keyId) ?? 0) > this.#clock.monotonicMs()) return 'dropped';
    let key = this.#keys.get(keyId);
    if (key === undefined) {
      key = { live: undefined, batch: undefined, lastSequences: new Map(), isClaimed: false };
      this.#keys.set(keyId, key);
    }
    if (sequence <= (key.lastSequences.get(writer) ?? 0)) return 'written';
    key.lastSequences.set(writer, sequence);
    key.live ??= { keyId, id: this.#nextId(), sums: noUsage() };
    addSums(key.live.sums, sums);
    return 'written';
  }

  /** Microseconds since 1970, so that ids grow from one run of the process to the next. */
  #nextId(): number {
    this.#lastId = Math.max(Math.floor(this.#clock.nowMs() * 1000), this.#lastId + 1);
    return this.#lastId;
  }
}

function addSums(to: UsageSums, added: UsageSums): void {
  addCounts(to.totals, added.totals);
  addCapped(to.endpoints, added.endpoints, MAX_ENDPOINTS);
  addCapped(to.customers, added.customers, MAX_CUSTOMERS);
  for (const [hour, counts] of added.hours) addUnder(to.hours, hour, counts);
}

function addCapped(to: Map<string, Counts>, added: ReadonlyMap<string, Counts>, cap: number): void {
  for (const [name, counts] of added) {
    const named = to.size - (to.has(OTHER) ? 1 : 0);
    addUnder(to, to.has(name) || named < cap ? name : OTHER, counts);
  }
}
