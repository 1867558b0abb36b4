import type { KeySnapshot } from '../consumer-key.ts';

/** A replica's copy of a key, for one of its secrets. A change makes a new entry: the snapshot of an entry never changes. */
export class KeyEntry {
  readonly snapshot: KeySnapshot;
  /** Which of the key's secrets it is for. */
  readonly secretVersion: number;
  /** When the grace of the secret ends if it is the key's previous one, see `keyFault`; null for the present one. Milliseconds since 1970. */
  readonly previousUntilMs: number | null;
  /** SHA-256 of the secret in base64, by which the cache finds the entry. */
  readonly digest: string;
  /** When the read, or the latest check, began. By the monotonic clock, like `usedAtMs`. */
  checkedAtMs: number;
  /** When the read began, or when the record store last failed to respond to one. */
  readAtMs: number;
  /** When the entry was last used, accurate to a few seconds: reading the clock for each request would cost too much. */
  usedAtMs: number;

  private constructor(
    snapshot: KeySnapshot,
    secret: Pick<KeyEntry, 'secretVersion' | 'previousUntilMs' | 'digest'>,
    readAtMs: number,
  ) {
    this.snapshot = snapshot;
    this.secretVersion = secret.secretVersion;
    this.previousUntilMs = secret.previousUntilMs;
    this.digest = secret.digest;
    this.checkedAtMs = readAtMs;
    this.readAtMs = readAtMs;
    this.usedAtMs = readAtMs;
  }

  /** Undefined if the key no longer has the secret. `readAtMs`: when the read began, by the monotonic clock. */
  static of(
    snapshot: KeySnapshot,
    { secretVersion, digest }: { readonly secretVersion: number; readonly digest: string },
    readAtMs: number,
  ): KeyEntry | undefined {
    const { previousSecret } = snapshot;
    if (snapshot.secretVersion === secretVersion)
      return new KeyEntry(snapshot, { secretVersion, previousUntilMs: null, digest }, readAtMs);
    if (previousSecret?.version !== secretVersion) return undefined;
    const previousUntilMs = previousSecret.validUntilMs;
    return new KeyEntry(snapshot, { secretVersion, previousUntilMs, digest }, readAtMs);
  }
}
