import type { KeyCache } from '../../keys/cache/key-cache.ts';
import type { KeyEntry } from '../../keys/cache/key-entry.ts';
import type { Clock } from '../../platform/clock.ts';
import { keyFault } from '../steps/authenticate.ts';
import { Tunnel, type TunnelOptions } from './tunnel.ts';

/** How long to wait before a key is read again after the record store did not respond. Milliseconds. */
const RETRY_MS = 1000;
/** How often stuck tunnels are looked for. Milliseconds. */
const PROBE_MS = 1000;
/** How often keys that have expired are looked for. Milliseconds. */
const EXPIRY_LOOK_MS = 250;

/** The open tunnels by key, so that a key that may no longer be used loses them. */
export class Tunnels {
  readonly #keys: Pick<KeyCache, 'isCurrent' | 'reload'>;
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Set<Tunnel>>();
  /**
   * For each key with tunnels that expires, or whose secret does: when to check the key again. Milliseconds since 1970. Not as timers: the
   * clock may be set.
   */
  readonly #expiries = new Map<string, number>();
  /** For each key with tunnels that could not be read: when to read it again. */
  readonly #retries = new Map<string, NodeJS.Timeout>();
  #size = 0;
  /** While there are tunnels. */
  #looks: readonly NodeJS.Timeout[] = [];

  constructor(keys: Pick<KeyCache, 'isCurrent' | 'reload'>, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Tunnels open now. */
  get size(): number {
    return this.#size;
  }

  /** Opens a tunnel, which closes when one of its ends does, when it is idle, or when its key may not be used any more. */
  open(options: Omit<TunnelOptions, 'onClosed'>): void {
    const { entry } = options;
    const { keyId } = entry.snapshot;
    const tunnel = new Tunnel({ ...options, onClosed: (closed) => this.#forget(keyId, closed) });
    const tunnels = this.#byKey.get(keyId) ?? new Set();
    this.#byKey.set(keyId, tunnels.add(tunnel));
    this.#size += 1;
    if (this.#looks.length === 0) this.#beginLooks();
    const endsAtMs = endOf(entry);
    if (endsAtMs < (this.#expiries.get(keyId) ?? Number.POSITIVE_INFINITY)) this.#recheckAt(keyId, endsAtMs);
    // A change while the backend's response was pending rechecked only the tunnels that existed.
    if (!this.#keys.isCurrent(entry, this.#clock.monotonicMs()))
      this.#recheckSecret(keyId, entry.secretVersion);
  }

  /** Reads a changed or expired key again, and closes its tunnels if it may no longer be used. */
  recheck(keyId: string): void {
    for (const [secretVersion] of this.#bySecret(keyId)) this.#recheckSecret(keyId, secretVersion);
  }

  /** Checks all keys again, for when changes may have been missed. */
  recheckAll(): void {
    for (const keyId of this.#byKey.keys()) this.recheck(keyId);
  }

  /** The latest entry of each key that has tunnels, one for each secret with which they were opened. */
  get entries(): readonly KeyEntry[] {
    return [...this.#byKey.keys()].flatMap((keyId) => this.#entriesOf(keyId));
  }

  /** The tunnels of a key by the version of the secret with which they were opened. */
  #bySecret(keyId: string): ReadonlyMap<number, readonly Tunnel[]> {
    return Map.groupBy(this.#byKey.get(keyId) ?? [], ({ entry }) => entry.secretVersion);
  }

  #entriesOf(keyId: string): readonly KeyEntry[] {
    return [...this.#bySecret(keyId).values()].flatMap(([tunnel]) => tunnel?.entry ?? []);
  }

  #recheckSecret(keyId: string, secretVersion: number): void {
    const [tunnel] = this.#bySecret(keyId).get(secretVersion) ?? [];
    if (tunnel === undefined) return;
    this.#keys.reload(tunnel.entry, (error, entry) => {
      if (error) this.#judgeUnread(keyId, secretVersion);
      else this.#judge(keyId, secretVersion, entry);
    });
  }

  /** The record store does not respond: until it does, the latest copy decides. */
  #judgeUnread(keyId: string, secretVersion: number): void {
    for (const tunnel of this.#bySecret(keyId).get(secretVersion) ?? [])
      if (keyFault(tunnel.entry, this.#clock) !== undefined) tunnel.close();
    // Every check of a key fails meanwhile, and must not plan one more retry each.
    if (!this.#byKey.has(keyId) || this.#retries.has(keyId)) return;
    const retry = () => {
      this.#retries.delete(keyId);
      this.recheck(keyId);
    };
    this.#retries.set(keyId, setTimeout(retry, RETRY_MS).unref());
  }

  #beginLooks(): void {
    this.#looks = [
      setInterval(() => this.#probe(), PROBE_MS).unref(),
      setInterval(() => this.#recheckExpired(), EXPIRY_LOOK_MS).unref(),
    ];
  }

  #endLooks(): void {
    for (const look of this.#looks) clearInterval(look);
    this.#looks = [];
  }

  #probe(): void {
    for (const tunnels of this.#byKey.values()) {
      for (const tunnel of tunnels) tunnel.probe();
    }
  }

  #recheckExpired(): void {
    const nowMs = this.#clock.nowMs();
    for (const [keyId, atMs] of this.#expiries) {
      if (atMs > nowMs) continue;
      this.#expiries.delete(keyId);
      this.recheck(keyId);
    }
  }

  #judge(keyId: string, secretVersion: number, current: KeyEntry | undefined): void {
    const entry = current && keyFault(current, this.#clock) === undefined ? current : undefined;
    for (const tunnel of this.#bySecret(keyId).get(secretVersion) ?? []) {
      if (entry === undefined || !tunnel.isAllowedBy(entry.snapshot)) tunnel.close();
      else tunnel.entry = entry;
    }
    const open = this.#entriesOf(keyId).filter(
      (each) => entry !== undefined || each.secretVersion !== secretVersion,
    );
    // An expiry may have been moved.
    this.#recheckAt(keyId, Math.min(...open.map(endOf)));
  }

  /** Infinite: never. */
  #recheckAt(keyId: string, atMs: number): void {
    if (atMs === Number.POSITIVE_INFINITY) this.#expiries.delete(keyId);
    else this.#expiries.set(keyId, atMs);
  }

  #forget(keyId: string, tunnel: Tunnel): void {
    const tunnels = this.#byKey.get(keyId);
    if (tunnels?.delete(tunnel) !== true) return;
    this.#size -= 1;
    if (this.#size === 0) this.#endLooks();
    if (tunnels.size > 0) return;
    this.#byKey.delete(keyId);
    clearTimeout(this.#retries.get(keyId));
    this.#retries.delete(keyId);
    this.#recheckAt(keyId, Number.POSITIVE_INFINITY);
  }
}

/** When the secret or the key of an entry ends, in milliseconds since 1970; infinite = never. */
function endOf({ snapshot, previousUntilMs }: KeyEntry): number {
  return Math.min(
    snapshot.expiresAtMs ?? Number.POSITIVE_INFINITY,
    previousUntilMs ?? Number.POSITIVE_INFINITY,
  );
}
