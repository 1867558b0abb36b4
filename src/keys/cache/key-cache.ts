import { hash } from 'node:crypto';
import type { ChangedRecord } from '../../limiter/changes/record-changes.ts';
import type { Clock } from '../../platform/clock.ts';
import { digestOfSecret } from '../../secrets/secret-digest.ts';
import { isWellFormedSecret, MAX_SECRET_LENGTH } from '../../secrets/secret-format.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import type { KeySnapshot } from '../consumer-key.ts';
import type { KeyRepository } from '../key-repository.ts';
import type { ImportedSecrets, SecretRepository } from '../secrets/secret-repository.ts';
import { BatchLoader } from './batch-loader.ts';
import { ImportedSecretsReader } from './imported-secrets-reader.ts';
import { KeyBatchLoader, type LoadedKey } from './key-batch-loader.ts';
import { KeyEntries } from './key-entries.ts';
import { KeyEntry } from './key-entry.ts';
import { KnownChanges } from './known-changes.ts';
import { NegativeCache } from './negative-cache.ts';
import { SingleFlight } from './single-flight.ts';

/** Most secrets that are being looked up or wait for their look-up, and most known keys that are being reloaded or wait for it. */
const MAX_LOADS = 10_000;

/** Keys that were used within this time are revalidated regularly. Milliseconds. */
const ACTIVE_FOR_MS = 60_000;
/**
 * A copy that was neither read nor checked for this long is read before it is used. Longer than two checks by `KeyRevalidator` take.
 * Milliseconds.
 */
const CHECKED_FOR_MS = 8000;
/**
 * A copy that was read longer ago is read before it is used, if the changes since were not followed for as long: the process stood still.
 * Milliseconds.
 */
const FOLLOWED_FOR_MS = 2250;
/** Pause after which it is looked again whether the record store responds. Milliseconds. */
const CONFIRMED_AGAIN_MS = 100;
/**
 * Reads of a key until one has the latest known change. The first that begins after the change was found has it, unless the record store lost
 * the change, as in a failover: then the record is as the last of these reads says.
 */
const MAX_READS = 3;
/** Longest that a request waits for this read. Milliseconds. */
const CONFIRMATION_TIMEOUT_MS = 1000;

/**
 * Responds to a `load`: an error, or the entry, or neither for a secret that names no key. `fresh` is true when the entry was read
 * from the record store for this very call, after it was made.
 */
export type Loaded = (error: Error | null, entry: KeyEntry | undefined, fresh: boolean) => void;

/** Responds to a `reload`: an error, or the entry as read after the call, or neither where the key is gone or has other secrets. */
export type Reloaded = (error: Error | null, entry: KeyEntry | undefined) => void;

/** A secret that a request presents, and the client that sends it. */
interface PresentedSecret {
  readonly secret: string;
  readonly digest: string;
  readonly client: string;
}

/** What the key cache needs. */
export interface KeyCacheOptions {
  readonly repository: Pick<KeyRepository, 'findSnapshotsByLookup' | 'findSnapshotsOrErrors'>;
  readonly secrets: Pick<SecretRepository, 'importedSecrets'>;
  readonly vault: Pick<SecretVault, 'lookups' | 'digestLookups'>;
  readonly clock: Clock;
}

/**
 * The keys that a replica knows, found by the secret that a request presents. The cache is never authoritative: every decision
 * compares the snapshot's version with the shared one, and reports `stale` when it is out of date.
 *
 * The callbacks are called exactly once, at once or later, and must not throw. No promise is made where no read is needed.
 */
export class KeyCache {
  /** Calls of `find` that found an entry, and that did not, since the start. */
  hits = 0;
  misses = 0;

  readonly #clock: Clock;
  readonly #vault: KeyCacheOptions['vault'];
  readonly #unknown: NegativeCache;
  readonly #imports: ImportedSecretsReader;
  /** By digest of the secret: the secret itself is never kept. */
  readonly #entries = new KeyEntries();
  readonly #lookUps: KeyBatchLoader;
  readonly #loads: SingleFlight<KeyEntry>;
  /** Separate from the look-ups, so that a flood of wrong secrets does not hold up known keys. */
  readonly #knownKeys: BatchLoader<string, KeySnapshot>;
  readonly #reloads: SingleFlight<KeyEntry>;
  /** Changes that a read which began before may lack. */
  readonly #changes: KnownChanges;
  /** Until when the changes of records are known, by the monotonic clock. Without a follower they need not be. */
  #followedUntilMs = Number.POSITIVE_INFINITY;
  /** When active entries were last taken, by the monotonic clock. */
  #takenAtMs: number;

  constructor(options: KeyCacheOptions) {
    this.#lookUps = new KeyBatchLoader(options.repository);
    this.#clock = options.clock;
    this.#changes = new KnownChanges(options.clock);
    this.#takenAtMs = options.clock.monotonicMs();
    this.#vault = options.vault;
    this.#imports = new ImportedSecretsReader(options.secrets);
    this.#unknown = new NegativeCache(options.clock);
    this.#loads = new SingleFlight(MAX_LOADS);
    this.#knownKeys = new BatchLoader({
      query: async (keyIds) => {
        const found = await options.repository.findSnapshotsOrErrors(keyIds);
        return keyIds.map((keyId) => found.get(keyId));
      },
      // Rarely used keys are read one at a time: pacing collects many such reads in one query.
      isPacedAfter: () => true,
    });
    this.#reloads = new SingleFlight(MAX_LOADS);
  }

  /** Keys remembered at present. */
  get size(): number {
    return this.#entries.size;
  }

  /** The cached entry of the secret's key. Undefined: call `load`. */
  find(secret: string): KeyEntry | undefined {
    // A longer text can't be a secret, so no digest is computed.
    const entry = secret.length > MAX_SECRET_LENGTH ? undefined : this.#entries.get(digestOf(secret));
    if (entry === undefined) {
      this.misses += 1;
    } else {
      this.hits += 1;
      entry.usedAtMs = this.#takenAtMs;
    }
    return entry;
  }

  /**
   * Reads the secret's key from the record store, unless the secret can't be one, or was not found a moment ago, and no secret was imported
   * since. Concurrent calls for the same secret share the read; only the first gets `fresh` true. Gives `StoreUnavailable`, or `overloaded`
   * when too many reads wait, of all clients or of this one: `client` names the client that presents the secret.
   */
  load(secret: string, client: string, loaded: Loaded): void {
    if (secret.length > MAX_SECRET_LENGTH) {
      loaded(null, undefined, false);
      return;
    }
    const presented = { secret, digest: digestOf(secret), client };
    const { last } = this.#imports;
    if (last !== undefined && this.#mayBeKnown(presented, last)) this.#join(presented, last, loaded);
    else this.#confirmUnknown(presented, loaded);
  }

  /** Whether a key may have this secret. */
  #mayBeKnown({ secret, digest }: PresentedSecret, { version, given, hashed }: ImportedSecrets): boolean {
    return !this.#unknown.has(digest, version) && (given || hashed || isWellFormedSecret(secret));
  }

  /** Gives no entry, unless the secret may have been imported meanwhile. */
  #confirmUnknown(presented: PresentedSecret, loaded: Loaded): void {
    this.#imports.read((error, imports) => {
      if (imports === undefined) loaded(error, undefined, false);
      else if (this.#mayBeKnown(presented, imports)) this.#join(presented, imports, loaded);
      else loaded(null, undefined, false);
    });
  }

  #join(presented: PresentedSecret, imports: ImportedSecrets, loaded: Loaded): void {
    this.#loads.join(
      presented.digest,
      () => this.#find(presented, imports),
      (error, entry, first) => {
        // The read may have begun before this call, and the secret may have been imported since.
        if (error || entry || first) loaded(error, entry, first);
        else this.#confirmUnknown(presented, loaded);
      },
    );
  }

  async #find(presented: PresentedSecret, imports: ImportedSecrets): Promise<KeyEntry | undefined> {
    const entry = await this.#lookUp(presented, imports);
    if (entry !== undefined || imports.hashed) return entry;
    // The first key that is found by the digest of its secret may have been imported since `imports` was read.
    const current = await this.#imports.next();
    return current.hashed ? this.#lookUp(presented, current) : undefined;
  }

  async #lookUp(
    { secret, digest, client }: PresentedSecret,
    { version, hashed }: ImportedSecrets,
  ): Promise<KeyEntry | undefined> {
    // The order matters: a key that is known by its secret takes precedence over one that is known by the secret's digest.
    const lookups = this.#vault.lookups(secret);
    const all = hashed ? [...lookups, ...this.#vault.digestLookups(digestOfSecret(secret))] : lookups;
    return this.#remember(digest, async () => {
      const loaded = await this.#lookUps.find(all, client);
      if (loaded === undefined) this.#unknown.add(digest, version);
      return loaded;
    });
  }

  /**
   * Reads an entry's key again, with a read that begins after this call. Calls for the same secret share a read that has not begun. If the
   * key is gone or no longer has the secret, the entry is dropped and none is given: the secret may be another key's now. Gives
   * `StoreUnavailable`, or `overloaded` when too many reads wait; the entry then stays in the cache.
   */
  reload(entry: KeyEntry, loaded: Reloaded): void {
    const { snapshot, secretVersion, digest } = entry;
    this.#reloads.join(
      digest,
      (begun) =>
        this.#remember(digest, async () => {
          const current = await this.#knownKeys.read(snapshot.keyId, { begun });
          return current && { snapshot: current, secretVersion };
        }),
      loaded,
    );
  }

  /** Whether a copy was not checked for some seconds: then `confirm` it first. `nowMs` is by the monotonic clock. */
  isUnchecked(entry: KeyEntry, nowMs: number): boolean {
    return (
      nowMs - entry.checkedAtMs >= CHECKED_FOR_MS ||
      (this.#isUnfollowed(nowMs) && nowMs - entry.readAtMs >= FOLLOWED_FOR_MS)
    );
  }

  /**
   * Whether the cache still has this copy, or one that is the same, and it was checked lately. Otherwise a copy that was held since it was
   * found may lack a change. `nowMs` is by the monotonic clock.
   */
  isCurrent({ secretVersion, snapshot: { keyId, version } }: KeyEntry, nowMs: number): boolean {
    return this.#entries
      .ofKey(keyId)
      .some(
        (cached) =>
          cached.secretVersion === secretVersion &&
          cached.snapshot.version === version &&
          !this.isUnchecked(cached, nowMs),
      );
  }

  /**
   * Drops the copies that these changes make outdated. All changes until `untilMs`, by the monotonic clock, are known now, or could not be
   * read because the record store does not respond.
   */
  follow(changed: readonly ChangedRecord[], untilMs: number): void {
    this.#followedUntilMs = untilMs;
    if (changed.length === 0) return;
    this.#changes.note(changed);
    const outdated = changed.some(({ kind }) => kind === 'plan')
      ? [...this.#entries.values()].filter((entry) => this.#changes.isOutdated(entry.snapshot))
      : changed
          .flatMap(({ id }) => this.#entries.ofKey(id))
          .filter((entry) => this.#changes.isOutdated(entry.snapshot));
    for (const { digest } of outdated) this.#entries.delete(digest);
  }

  /** Whether a copy, which may be held outside of the cache, lacks a change that `follow` was called with lately. */
  isOutdated(snapshot: KeySnapshot): boolean {
    return this.#changes.isOutdated(snapshot);
  }

  /** Has every copy confirmed before its next use, because changes may have been missed. None is dropped: the record store may be away by then. */
  distrust(): void {
    this.#changes.clear();
    for (const entry of this.#entries.values()) entry.checkedAtMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * Reloads the entry, and gives the result if it comes within a second. If the record store does not respond, the entry is given as it is
   * and counts as checked: a store that is down gets a query for each key every few seconds, not with each request. While it is not known
   * whether the store responds, because this process stood still, the result is waited for. `fresh` is true if the entry was read.
   */
  confirm(entry: KeyEntry, confirmed: (entry: KeyEntry | undefined, fresh: boolean) => void): void {
    let isOver = false;
    let isReading = false;
    let timer: NodeJS.Timeout | undefined;
    const give = (given: KeyEntry | undefined, fresh: boolean) => {
      isOver = true;
      clearTimeout(timer);
      confirmed(given, fresh);
    };
    const keep = () => {
      const nowMs = this.#clock.monotonicMs();
      if (this.#isUnfollowed(nowMs)) {
        timer = setTimeout(isReading ? keep : read, CONFIRMED_AGAIN_MS);
        return;
      }
      entry.checkedAtMs = nowMs;
      entry.readAtMs = nowMs;
      give(entry, false);
    };
    const read = () => {
      isReading = true;
      timer = setTimeout(keep, CONFIRMATION_TIMEOUT_MS);
      this.reload(entry, (error, reloaded) => {
        isReading = false;
        if (isOver) return;
        clearTimeout(timer);
        if (error) keep();
        else give(reloaded, true);
      });
    };
    read();
  }

  #isUnfollowed(nowMs: number): boolean {
    return nowMs - this.#followedUntilMs >= FOLLOWED_FOR_MS;
  }

  /** The entries that were used within the last minute, for the caller to check. They count as checked from now on. */
  takeActive(): readonly KeyEntry[] {
    const nowMs = this.#clock.monotonicMs();
    const active: KeyEntry[] = [];
    // Most recently used first.
    for (const entry of this.#entries.values()) {
      if (nowMs - entry.usedAtMs > ACTIVE_FOR_MS) break;
      entry.checkedAtMs = nowMs;
      active.push(entry);
    }
    this.#takenAtMs = nowMs;
    return active;
  }

  /** Forgets a key, so that its next request reads it. */
  drop(keyId: string): void {
    this.#entries.deleteKey(keyId);
  }

  /** Caches what a read finds. Reads again what lacks a change that was found meanwhile. */
  async #remember(digest: string, read: () => Promise<LoadedKey | undefined>): Promise<KeyEntry | undefined> {
    for (let reads = 1; ; reads += 1) {
      const readAtMs = this.#clock.monotonicMs();
      const loaded = await read();
      if (loaded !== undefined && reads < MAX_READS && this.#changes.isOutdated(loaded.snapshot)) continue;
      const entry =
        loaded && KeyEntry.of(loaded.snapshot, { secretVersion: loaded.secretVersion, digest }, readAtMs);
      if (entry === undefined) this.#entries.delete(digest);
      else this.#entries.add(entry);
      return entry;
    }
  }
}

function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64');
}
