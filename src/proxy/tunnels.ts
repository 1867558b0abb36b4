import type { Clock } from '../platform/clock.ts';
import { grantFault, type KeySource } from './authenticate.ts';
import { Tunnel, type TunnelOptions } from './tunnel.ts';

/** How long to wait before a key is read again after the record store did not answer. Milliseconds. */
const RETRY_MS = 1000;
/** The longest that a timer of Node's can wait. Milliseconds. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** The open tunnels by key, so that a key that may no longer be used loses them. */
export class Tunnels {
  readonly #keys: KeySource;
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Set<Tunnel>>();
  #size = 0;

  constructor(keys: KeySource, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Tunnels open now. */
  get size(): number {
    return this.#size;
  }

  /** Opens a tunnel, which closes when one of its ends does, when it is idle, or when its key may not be used any more. */
  open(options: Omit<TunnelOptions, 'onClosed'>): void {
    const { keyId } = options.entry.grant;
    let expiry: NodeJS.Timeout | undefined;
    const tunnel = new Tunnel({
      ...options,
      onClosed: (closed) => {
        clearTimeout(expiry);
        this.#forget(keyId, closed);
      },
    });
    const tunnels = this.#byKey.get(keyId) ?? new Set();
    this.#byKey.set(keyId, tunnels.add(tunnel));
    this.#size += 1;
    const { expiresAtMs } = options.entry.grant;
    if (expiresAtMs !== null) {
      const leftMs = Math.min(LONGEST_TIMER_MS, Math.max(0, expiresAtMs - this.#clock.nowMs()));
      expiry = setTimeout(() => this.recheck(keyId), leftMs);
    }
  }

  /** Reads a key again that has changed or expired, and closes its tunnels if it may not be used any more. */
  recheck(keyId: string): void {
    const [tunnel] = this.#byKey.get(keyId) ?? [];
    if (tunnel === undefined) return;
    this.#keys.reload(tunnel.entry, (error, entry) => {
      if (error) setTimeout(() => this.recheck(keyId), RETRY_MS).unref();
      else if (entry === undefined || grantFault(entry.grant, this.#clock)) this.closeOf(keyId);
    });
  }

  /** Closes all tunnels of a key. */
  closeOf(keyId: string): void {
    for (const tunnel of this.#byKey.get(keyId) ?? []) tunnel.close();
  }

  #forget(keyId: string, tunnel: Tunnel): void {
    const tunnels = this.#byKey.get(keyId);
    if (tunnels?.delete(tunnel) !== true) return;
    this.#size -= 1;
    if (tunnels.size === 0) this.#byKey.delete(keyId);
  }
}
