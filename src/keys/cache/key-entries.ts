import { BoundedCache } from '../../platform/bounded-cache.ts';
import type { KeyEntry } from './key-entry.ts';

/** Entries remembered. */
const MAX_ENTRIES = 100_000;

/** The entries of a replica, found by the digest of a secret or by key. When there are too many, the least recently used one is dropped. */
export class KeyEntries {
  readonly #entries: BoundedCache<KeyEntry>;
  /** The digests of each key that has entries. Most keys have one, which needs no array. */
  readonly #digests = new Map<string, string | readonly string[]>();

  constructor() {
    this.#entries = new BoundedCache(MAX_ENTRIES, ({ snapshot }, digest, reason) => {
      if (reason !== 'set') this.#removeDigest(snapshot.keyId, digest);
    });
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The entry of a secret, which counts as used. */
  get(digest: string): KeyEntry | undefined {
    return this.#entries.get(digest);
  }

  /** The entries of a key, without counting them as used. */
  ofKey(keyId: string): readonly KeyEntry[] {
    return this.#digestsOf(keyId).flatMap((digest) => this.#entries.peek(digest) ?? []);
  }

  /** All entries, the one used last first. */
  values(): Iterable<KeyEntry> {
    return this.#entries.values();
  }

  /** Adds an entry, in place of an earlier one for the same secret. */
  add(entry: KeyEntry): void {
    const { digest, snapshot } = entry;
    // Two keys may have the same secret one after the other.
    if (this.#entries.peek(digest)?.snapshot.keyId !== snapshot.keyId) this.#entries.delete(digest);
    this.#entries.set(digest, entry);
    this.#addDigest(snapshot.keyId, digest);
  }

  /** Removes the entry of a secret. */
  delete(digest: string): void {
    this.#entries.delete(digest);
  }

  /** Removes all entries of a key. */
  deleteKey(keyId: string): void {
    for (const digest of this.#digestsOf(keyId)) this.#entries.delete(digest);
  }

  #digestsOf(keyId: string): readonly string[] {
    const digests = this.#digests.get(keyId) ?? [];
    return typeof digests === 'string' ? [digests] : digests;
  }

  #addDigest(keyId: string, digest: string): void {
    const digests = this.#digests.get(keyId);
    if (digests === undefined) this.#digests.set(keyId, digest);
    else if (digests !== digest && !digests.includes(digest))
      this.#digests.set(keyId, [...this.#digestsOf(keyId), digest]);
  }

  #removeDigest(keyId: string, digest: string): void {
    const [one, ...more] = this.#digestsOf(keyId).filter((other) => other !== digest);
    if (one === undefined) this.#digests.delete(keyId);
    else this.#digests.set(keyId, more.length === 0 ? one : [one, ...more]);
  }
}
