import { InvalidApiKey, type TollgateError } from '../errors.ts';
import type { KeyCache } from '../keys/cache/key-cache.ts';
import type { KeyEntry } from '../keys/cache/key-entry.ts';
import type { KeySnapshot } from '../keys/consumer-key.ts';
import { type RequestSource, restrictionFault } from '../keys/key-restrictions.ts';
import type { Clock } from '../platform/clock.ts';
import { keyFault } from './steps/authenticate.ts';

/** How long to wait before a key is read again after the record store did not respond. Milliseconds. */
const RETRY_MS = 1000;
/** How often keys that have expired are looked for. Milliseconds. */
const EXPIRY_LOOK_MS = 250;

/** What lasts for long and ends when its key may no longer be used: an upgraded connection or a long response. */
export interface KeyUse {
  /** The latest known copy of the key. */
  entry: KeyEntry;
  /** Where the client sent the request from. */
  readonly source: RequestSource;
  /** Ends it at once, because the key may no longer be used. */
  end(fault: TollgateError): void;
}

/** The long uses by key, so that a key that may no longer be used loses them. */
export class KeyUses {
  readonly #keys: Pick<KeyCache, 'isCurrent' | 'reload'>;
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Set<KeyUse>>();
  /**
   * For each key with uses that expires, or whose secret does: when to check the key again. Milliseconds since 1970. Not as timers: the
   * clock may be set.
   */
  readonly #expiries = new Map<string, number>();
  /** For each key with uses that could not be read: when to read it again. */
  readonly #retries = new Map<string, NodeJS.Timeout>();
  /** While there are uses. */
  #looks: NodeJS.Timeout | undefined = undefined;

  constructor(keys: Pick<KeyCache, 'isCurrent' | 'reload'>, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** From now on the use ends when its key may not be used any more. */
  add(use: KeyUse): void {
    const { entry } = use;
    const { keyId } = entry.snapshot;
    const uses = this.#byKey.get(keyId) ?? new Set();
    this.#byKey.set(keyId, uses.add(use));
    this.#looks ??= setInterval(() => this.#recheckExpired(), EXPIRY_LOOK_MS).unref();
    const endsAtMs = endOf(entry);
    if (endsAtMs < (this.#expiries.get(keyId) ?? Number.POSITIVE_INFINITY)) this.#recheckAt(keyId, endsAtMs);
    // A change since the request was authenticated rechecked only the uses that existed.
    if (!this.#keys.isCurrent(entry, this.#clock.monotonicMs()))
      this.#recheckSecret(keyId, entry.secretVersion);
  }

  /** To be called when a use has ended in any other way. Does nothing when it is not known. */
  delete(use: KeyUse): void {
    const { keyId } = use.entry.snapshot;
    const uses = this.#byKey.get(keyId);
    if (uses?.delete(use) !== true || uses.size > 0) return;
    this.#byKey.delete(keyId);
    clearTimeout(this.#retries.get(keyId));
    this.#retries.delete(keyId);
    this.#recheckAt(keyId, Number.POSITIVE_INFINITY);
    if (this.#byKey.size > 0) return;
    clearInterval(this.#looks);
    this.#looks = undefined;
  }

  /** Reads a changed or expired key again, and ends its uses if it may no longer be used. */
  recheck(keyId: string): void {
    for (const [secretVersion] of this.#bySecret(keyId)) this.#recheckSecret(keyId, secretVersion);
  }

  /** Checks all keys again, for when changes may have been missed. */
  recheckAll(): void {
    for (const keyId of this.#byKey.keys()) this.recheck(keyId);
  }

  /** The latest copy of each key that has uses, one for each secret with which they began. */
  get copies(): readonly KeySnapshot[] {
    return [...this.#byKey.keys()].flatMap((keyId) => this.#entriesOf(keyId)).map(({ snapshot }) => snapshot);
  }

  /** The uses of a key by the version of the secret with which they began. */
  #bySecret(keyId: string): ReadonlyMap<number, readonly KeyUse[]> {
    return Map.groupBy(this.#byKey.get(keyId) ?? [], ({ entry }) => entry.secretVersion);
  }

  #entriesOf(keyId: string): readonly KeyEntry[] {
    return [...this.#bySecret(keyId).values()].flatMap(([use]) => use?.entry ?? []);
  }

  #recheckSecret(keyId: string, secretVersion: number): void {
    const [use] = this.#bySecret(keyId).get(secretVersion) ?? [];
    if (use === undefined) return;
    this.#keys.reload(use.entry, (error, entry) => {
      if (error) this.#judgeUnread(keyId, secretVersion);
      else this.#judge(keyId, secretVersion, entry);
    });
  }

  /** The record store does not respond: until it does, the latest copy decides. */
  #judgeUnread(keyId: string, secretVersion: number): void {
    for (const use of this.#bySecret(keyId).get(secretVersion) ?? []) {
      const fault = keyFault(use.entry, this.#clock);
      if (fault !== undefined) use.end(fault);
    }
    // Every check of a key fails meanwhile, and must not plan one more retry each.
    if (!this.#byKey.has(keyId) || this.#retries.has(keyId)) return;
    const retry = () => {
      this.#retries.delete(keyId);
      this.recheck(keyId);
    };
    this.#retries.set(keyId, setTimeout(retry, RETRY_MS).unref());
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
    const fault = current === undefined ? new InvalidApiKey() : keyFault(current, this.#clock);
    const entry = fault === undefined ? current : undefined;
    for (const use of this.#bySecret(keyId).get(secretVersion) ?? []) {
      const ended = fault ?? (entry && sourceFault(entry.snapshot, use.source));
      if (ended !== undefined) use.end(ended);
      else if (entry !== undefined) use.entry = entry;
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
}

/** When the secret or the key of an entry ends, in milliseconds since 1970; infinite = never. */
function endOf({ snapshot, previousUntilMs }: KeyEntry): number {
  return Math.min(
    snapshot.expiresAtMs ?? Number.POSITIVE_INFINITY,
    previousUntilMs ?? Number.POSITIVE_INFINITY,
  );
}

/** Why a key may not be used from this source any more; undefined when it may. */
function sourceFault({ restrictions }: KeySnapshot, source: RequestSource): TollgateError | undefined {
  return restrictions === null ? undefined : restrictionFault(restrictions, source);
}
