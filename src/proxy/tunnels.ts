import type { KeyCache, KeyEntry } from '../keys/cache/key-cache.ts';
import type { Clock } from '../platform/clock.ts';
import { keyFault } from './steps/current-key.ts';
import { Tunnel, type TunnelOptions } from './tunnel.ts';

/** How long to wait before a key is read again after the record store did not respond. Milliseconds. */
const RETRY_MS = 1000;
/** How often tunnels are looked through for those that are stuck. Milliseconds. */
const PROBE_MS = 1000;
/** The longest that a timer of Node's can wait. Milliseconds. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** The open tunnels by key, so that a key that may no longer be used loses them. */
export class Tunnels {
  readonly #keys: Pick<KeyCache, 'reload'>;
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Set<Tunnel>>();
  /** For each key with tunnels that has an expiry: when to look whether it has come. */
  readonly #expiries = new Map<string, NodeJS.Timeout>();
  #size = 0;
  #probing: NodeJS.Timeout | undefined = undefined;

  constructor(keys: Pick<KeyCache, 'reload'>, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Tunnels open now. */
  get size(): number {
    return this.#size;
  }

  /** Opens a tunnel, which closes when one of its ends does, when it is idle, or when its key may not be used any more. */
  open(options: Omit<TunnelOptions, 'onClosed'>): void {
    const { keyId } = options.entry.snapshot;
    const tunnel = new Tunnel({ ...options, onClosed: (closed) => this.#forget(keyId, closed) });
    const tunnels = this.#byKey.get(keyId) ?? new Set();
    this.#byKey.set(keyId, tunnels.add(tunnel));
    this.#size += 1;
    this.#probing ??= setInterval(() => this.#probe(), PROBE_MS).unref();
    this.#recheckAt(keyId, options.entry.snapshot.expiresAtMs);
  }

  /** Reads a key again that has changed or expired, and closes its tunnels if it may not be used any more. */
  recheck(keyId: string): void {
    const [tunnel] = this.#byKey.get(keyId) ?? [];
    if (tunnel === undefined) return;
    this.#keys.reload(tunnel.entry, (error, entry) => {
      if (error) setTimeout(() => this.recheck(keyId), RETRY_MS).unref();
      else this.#judge(keyId, entry);
    });
  }

  /** Does so for all keys, for when changes may have been missed. */
  recheckAll(): void {
    for (const keyId of this.#byKey.keys()) this.recheck(keyId);
  }

  /** What is known of each key that has tunnels. */
  get entries(): readonly KeyEntry[] {
    return [...this.#byKey.values()].flatMap(([tunnel]) => tunnel?.entry ?? []);
  }

  /** Closes all tunnels of a key. */
  closeOf(keyId: string): void {
    for (const tunnel of this.#byKey.get(keyId) ?? []) tunnel.close();
  }

  #probe(): void {
    for (const tunnels of this.#byKey.values()) {
      for (const tunnel of tunnels) tunnel.probe();
    }
  }

  #stopProbing(): void {
    clearInterval(this.#probing);
    this.#probing = undefined;
  }

  #judge(keyId: string, entry: KeyEntry | undefined): void {
    if (entry === undefined || keyFault(entry, this.#clock) !== undefined) {
      this.closeOf(keyId);
      return;
    }
    const tunnels = this.#byKey.get(keyId);
    if (tunnels === undefined) return;
    for (const tunnel of tunnels) {
      tunnel.entry = entry;
      if (!tunnel.isAllowedBy(entry.snapshot)) tunnel.close();
    }
    // Its expiry may have been moved, and a timer may come a little early.
    this.#recheckAt(keyId, entry.snapshot.expiresAtMs);
  }

  #recheckAt(keyId: string, expiresAtMs: number | null): void {
    clearTimeout(this.#expiries.get(keyId));
    this.#expiries.delete(keyId);
    if (expiresAtMs === null) return;
    const leftMs = Math.min(LONGEST_TIMER_MS, Math.max(0, expiresAtMs - this.#clock.nowMs()));
    this.#expiries.set(
      keyId,
      setTimeout(() => this.recheck(keyId), leftMs),
    );
  }

  #forget(keyId: string, tunnel: Tunnel): void {
    const tunnels = this.#byKey.get(keyId);
    if (tunnels?.delete(tunnel) !== true) return;
    this.#size -= 1;
    if (this.#size === 0) this.#stopProbing();
    if (tunnels.size > 0) return;
    this.#byKey.delete(keyId);
    this.#recheckAt(keyId, null);
  }
}
