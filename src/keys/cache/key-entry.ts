import type { KeySnapshot } from '../consumer-key.ts';

/** What a replica remembers of a key, for one of its secrets. A change makes a new entry; what this one says of the key stays as it is. */
export class KeyEntry {
  readonly snapshot: KeySnapshot;
  /** Which of the key's secrets it is for. */
  readonly secretVersion: number;
  /** Until when that secret is valid because it is the one before the present one; null for the present one. Milliseconds since 1970. */
  readonly previousUntilMs: number | null;
  /** Of that secret, by which the cache finds the entry. */
  readonly digest: string;
  /** When the read, or the latest check, began. By the monotonic clock, as the other one. */
  checkedAtMs: number;
  /** When it was used last, to a few seconds: reading the clock for each request would cost too much. */
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
    this.usedAtMs = readAtMs;
  }

  /** Undefined where the secret is not one of the key's any more. `readAtMs`: when the read began, by the monotonic clock. */
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
