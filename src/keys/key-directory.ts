import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../platform/clock.ts';
import type { KeyGrant } from './consumer-key.ts';
import { GrantLookUps } from './grant-look-ups.ts';
import type { KeyRepository } from './key-repository.ts';
import { LookUpGate } from './look-up-gate.ts';
import { isWellFormedSecret, MAX_SECRET_LENGTH } from './secret-format.ts';
import type { SecretVault } from './secret-vault.ts';
import { SharedReads } from './shared-reads.ts';
import { UnknownSecrets } from './unknown-secrets.ts';

const WAITING_PER_LOOKUP = 100;
/** Secrets being looked up, or waiting for it, at a time. */
const SECRETS_LOOKED_UP = 2000;

/** How old an entry may be while versions can't be compared: with the read, a change holds within five seconds. */
const CONFIRMED_FOR_MS = 4000;
/** Longest that a request waits for its key to be read again then. */
const CONFIRMATION_TIMEOUT_MS = 1000;

/** What a replica remembers of a key. A change makes a new entry; this one stays as it is. */
export interface KeyEntry {
  readonly grant: KeyGrant;
}

/**
 * Answers a `load`: an error, or the entry, or neither for a secret that names no key. `fresh` is true when the entry was read
 * from the record store for this very call, after it was made.
 */
export type Loaded = (error: Error | null, entry: KeyEntry | undefined, fresh: boolean) => void;

/** Answers a `reload`: an error, or the entry as read after the call, or neither for a key that is gone. */
export type Reloaded = (error: Error | null, entry: KeyEntry | undefined) => void;

/** What the directory works with, and its bounds. */
export interface KeyDirectoryOptions {
  readonly repository: Pick<KeyRepository, 'findGrantsByLookup' | 'findGrantById'>;
  readonly vault: Pick<SecretVault, 'lookups'>;
  readonly clock: Clock;
  /** Keys remembered; the least recently used one is forgotten first. 100 000 unless told. */
  readonly maxEntries?: number;
  /** Secrets remembered that name no key. 100 000 unless told. */
  readonly maxUnknown?: number;
  /** For how long, in milliseconds. 5000 unless told. */
  readonly unknownTtlMs?: number;
  /**
   * Reads of the record store that run together: so many for unknown secrets, and so many for known keys, so that a flood of
   * wrong secrets does not hold up the others. A read of secrets is for up to a hundred of them; 2000 may wait. Of known keys, a
   * hundred times as many as may be read. 8 unless told.
   */
  readonly maxLookups?: number;
}

/**
 * The keys that a replica knows, found by the secret that a request presents. Nothing here is the truth: every decision
 * compares the grant's version with the shared one, and says so when it is out of date.
 *
 * The callbacks are called exactly once, at once or later, and must not throw. No promise is made where no read is needed.
 */
export class KeyDirectory {
  /** Calls of `find` that found an entry, and that did not, since the start. */
  hits = 0;
  misses = 0;

  readonly #repository: KeyDirectoryOptions['repository'];
  readonly #clock: Clock;
  readonly #vault: KeyDirectoryOptions['vault'];
  readonly #unknown: UnknownSecrets;
  /** By digest of the secret: the secret itself is never kept. */
  readonly #entries: LRUCache<string, KeyEntry>;
  /** The digest of each key that has an entry. */
  readonly #digests = new Map<string, string>();
  readonly #lookUps: GrantLookUps;
  readonly #loads: SharedReads<KeyEntry>;
  readonly #reloads: SharedReads<KeyEntry>;

  constructor(options: KeyDirectoryOptions) {
    const { maxEntries = 100_000, maxUnknown = 100_000, unknownTtlMs = 5000, maxLookups = 8 } = options;
    this.#repository = options.repository;
    this.#lookUps = new GrantLookUps({ repository: options.repository, maxRunning: maxLookups });
    this.#clock = options.clock;
    this.#vault = options.vault;
    this.#unknown = new UnknownSecrets(maxUnknown, unknownTtlMs, options.clock);
    this.#entries = new LRUCache({
      max: maxEntries,
      dispose: ({ grant }, _digest, reason) => {
        if (reason !== 'set') {
          this.#digests.delete(grant.keyId);
        }
      },
    });
    this.#loads = new SharedReads(new LookUpGate(SECRETS_LOOKED_UP, 0));
    this.#reloads = new SharedReads(new LookUpGate(maxLookups, maxLookups * WAITING_PER_LOOKUP));
  }

  /** Keys remembered at present. */
  get size(): number {
    return this.#entries.size;
  }

  /** What is remembered of the secret's key. Undefined: ask with `load`. */
  find(secret: string): KeyEntry | undefined {
    // A longer text is no secret: it is not worth its digest.
    const entry = secret.length > MAX_SECRET_LENGTH ? undefined : this.#entries.get(digestOf(secret));
    if (entry === undefined) {
      this.misses += 1;
    } else {
      this.hits += 1;
    }
    return entry;
  }

  /**
   * Reads the secret's key from the record store, unless the secret can't be one or was found unknown a moment ago. Calls for the
   * same secret that come meanwhile share the read, and get `fresh` false. Gives `StoreUnavailable`, or `overloaded` when too
   * many reads wait.
   */
  load(secret: string, loaded: Loaded): void {
    if (!isWellFormedSecret(secret)) {
      loaded(null, undefined, false);
      return;
    }
    const digest = digestOf(secret);
    if (this.#unknown.has(digest)) {
      loaded(null, undefined, false);
      return;
    }
    this.#loads.join(
      digest,
      async () => {
        const readAtMs = this.#clock.monotonicMs();
        return this.#remember(digest, await this.#lookUps.find(this.#vault.lookups(secret)), readAtMs);
      },
      loaded,
    );
  }

  /**
   * Reads an entry's key again, with a read that begins after this call. Calls for the same key whose read has not begun share
   * one. The key is forgotten when it is gone. Gives `StoreUnavailable`, or `overloaded` when too many reads wait; the entry stays
   * remembered then.
   */
  reload(entry: KeyEntry, loaded: Reloaded): void {
    const { keyId } = entry.grant;
    // The entry's own digest, because the change feed may have made us forget the key since it was found.
    const digest = entry instanceof RememberedKey ? entry.digest : this.#digests.get(keyId);
    this.#reloads.joinNext(
      keyId,
      async () => {
        const readAtMs = this.#clock.monotonicMs();
        return this.#remember(digest, await this.#repository.findGrantById(keyId), readAtMs);
      },
      loaded,
    );
  }

  /**
   * For as long as versions can't be compared: gives the entry while it is less than four seconds old, else what a new read gives
   * within a second, undefined for a key that is gone. Where the record store does not answer either, the entry is given as it
   * is and counts as read: a store that is away is asked for each key once in a while, not with each request.
   */
  confirm(entry: KeyEntry, confirmed: (entry: KeyEntry | undefined) => void): void {
    const isOld =
      entry instanceof RememberedKey && this.#clock.monotonicMs() - entry.readAtMs >= CONFIRMED_FOR_MS;
    if (!isOld) {
      confirmed(entry);
      return;
    }
    let isOver = false;
    const give = (given: KeyEntry | undefined) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      confirmed(given);
    };
    const keep = () => {
      entry.readAtMs = this.#clock.monotonicMs();
      give(entry);
    };
    const timer = setTimeout(keep, CONFIRMATION_TIMEOUT_MS);
    this.reload(entry, (error, reloaded) => {
      if (error) keep();
      else give(reloaded);
    });
  }

  /** Forgets a key, so that its next request reads it. */
  drop(keyId: string): void {
    const digest = this.#digests.get(keyId);
    if (digest !== undefined) {
      this.#entries.delete(digest);
    }
  }

  #remember(digest: string | undefined, grant: KeyGrant | undefined, readAtMs: number): KeyEntry | undefined {
    if (digest === undefined) {
      return grant && { grant };
    }
    if (grant === undefined) {
      this.#entries.delete(digest);
      this.#unknown.add(digest);
      return undefined;
    }
    const entry = new RememberedKey(grant, digest, readAtMs);
    this.#entries.set(digest, entry);
    this.#digests.set(grant.keyId, digest);
    return entry;
  }
}

class RememberedKey implements KeyEntry {
  readonly grant: KeyGrant;
  readonly digest: string;
  /** When the read began, by the monotonic clock. Raised in place where a new read was not possible. */
  readAtMs: number;

  constructor(grant: KeyGrant, digest: string, readAtMs: number) {
    this.grant = grant;
    this.digest = digest;
    this.readAtMs = readAtMs;
  }
}

function digestOf(secret: string): string {
  return hash('sha256', secret, 'base64');
}
