import type { Clock } from '../platform/clock.ts';
import type { LiveUsage } from './live-usage.ts';

/** How long a shard is locked for the replica that has taken it, unless that renews the lock. Milliseconds. */
export const SHARD_LEASE_MS = 30_000;

/** The lock of a shard has ended: another replica may have taken it. Nothing of it was kept. */
export class ShardLeaseEnded extends Error {}

/**
 * A replica's lock on a shard, renewed while it is in use. By the monotonic clock of this process it never lasts longer than in the store:
 * a process that stood still knows that it may not go on.
 */
export class ShardLease {
  readonly #live: Pick<LiveUsage, 'renew'>;
  readonly #clock: Clock;
  readonly #shard: number;
  readonly #renewing: NodeJS.Timeout;
  #endsAtMs: number;

  /** `askedAtMs`, by the monotonic clock: before the shard was asked for. */
  constructor(live: Pick<LiveUsage, 'renew'>, clock: Clock, taken: { shard: number; askedAtMs: number }) {
    this.#live = live;
    this.#clock = clock;
    this.#shard = taken.shard;
    this.#endsAtMs = taken.askedAtMs + SHARD_LEASE_MS;
    this.#renewing = setInterval(() => void this.#renew(), SHARD_LEASE_MS / 3).unref();
  }

  /** For how long the lock has ended; 0 while it is held. Milliseconds. */
  get overrunMs(): number {
    return Math.max(0, this.#clock.monotonicMs() - this.#endsAtMs);
  }

  /** Throws `ShardLeaseEnded` if the lock is not held any more. To be called before each step. */
  readonly requireHeld = (): void => {
    if (this.#clock.monotonicMs() >= this.#endsAtMs)
      throw new ShardLeaseEnded('The lock of the shard has ended.');
  };

  /** Renews the lock no more. */
  stop(): void {
    clearInterval(this.#renewing);
  }

  async #renew(): Promise<void> {
    const askedAtMs = this.#clock.monotonicMs();
    // A lock that has ended may be another replica's by now.
    if (askedAtMs >= this.#endsAtMs) return;
    try {
      if (await this.#live.renew(this.#shard)) this.#endsAtMs = askedAtMs + SHARD_LEASE_MS;
      else this.#endsAtMs = Math.min(this.#endsAtMs, askedAtMs);
    } catch {
      // Tried again before the lock ends.
    }
  }
}
