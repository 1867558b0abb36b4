import type { ChangedRecord } from '../../limiter/changes/record-changes.ts';
import type { Clock } from '../../platform/clock.ts';
import type { KeySnapshot } from '../consumer-key.ts';

/** How long a change is remembered: longer than a read that began before it may take. Milliseconds. */
const KEPT_MS = 60_000;

interface KnownChange {
  /** Infinity once the record is deleted. */
  readonly version: number;
  readonly notedAtMs: number;
}

/** The latest known changes of records, to recognise copies that were read before them. */
export class KnownChanges {
  readonly #clock: Clock;
  /** The change noted last is the last one. */
  readonly #keys = new Map<string, KnownChange>();
  readonly #plans = new Map<string, KnownChange>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(changed: readonly ChangedRecord[]): void {
    const notedAtMs = this.#clock.monotonicMs();
    for (const { kind, id, version } of changed) {
      const known = kind === 'key' ? this.#keys : this.#plans;
      known.delete(id);
      known.set(id, { version: version ?? Number.POSITIVE_INFINITY, notedAtMs });
    }
    removeOld(this.#keys, notedAtMs - KEPT_MS);
    removeOld(this.#plans, notedAtMs - KEPT_MS);
  }

  /** Whether a copy lacks a known change of its key, or of the plan that applies. */
  isOutdated({ keyId, version, plan }: KeySnapshot): boolean {
    if (this.#keys.size === 0 && this.#plans.size === 0) return false;
    const key = this.#keys.get(keyId);
    const applied = plan === null ? undefined : this.#plans.get(plan.id);
    if (key === undefined && applied === undefined) return false;
    const [keyVersion, planVersion] = version.split('.').map(Number);
    return (keyVersion ?? 0) < (key?.version ?? 0) || (planVersion ?? 0) < (applied?.version ?? 0);
  }

  clear(): void {
    this.#keys.clear();
    this.#plans.clear();
  }
}

function removeOld(known: Map<string, KnownChange>, beforeMs: number): void {
  for (const [id, { notedAtMs }] of known) {
    if (notedAtMs >= beforeMs) return;
    known.delete(id);
  }
}
