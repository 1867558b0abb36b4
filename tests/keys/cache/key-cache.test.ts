import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { StoreUnavailable } from '../../../src/errors.ts';
import { KeyCache, type KeyCacheOptions } from '../../../src/keys/cache/key-cache.ts';
import type { KeyEntry } from '../../../src/keys/cache/key-entry.ts';
import type { KeySnapshot } from '../../../src/keys/consumer-key.ts';
import type { ImportedSecrets } from '../../../src/keys/secrets/secret-repository.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import { createSecret } from '../../../src/secrets/secret-format.ts';
import { SecretVault } from '../../../src/secrets/secret-vault.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';

const vault = new SecretVault([Buffer.alloc(32, 1), Buffer.alloc(32, 2)], systemRandom);

/** A store that responds when the test says so, in the order of its choice. */
class HeldStore implements Pick<KeyCacheOptions, 'repository'> {
  readonly snapshots = new Map<string, KeySnapshot>();
  readonly secrets = new Map<string, string>();
  readonly versions = new Map<string, number>();
  /** Keys that can't be read. */
  readonly broken = new Map<string, Error>();
  /** The keys of each query by ids. */
  readonly idsRead: (readonly string[])[] = [];
  imports: ImportedSecrets = { version: 0, given: false, hashed: false };
  importReads = 0;
  isUnavailable = false;
  readonly reads: { respond(): void; reject(error: Error): void; readonly lookups: number }[] = [];
  readonly repository = {
    findSnapshotsByLookup: (lookups: readonly Buffer[]) =>
      this.#read(
        () =>
          lookups.flatMap((lookup) => {
            const snapshot = this.snapshots.get(this.secrets.get(lookup.toString('hex')) ?? '');
            return snapshot === undefined
              ? []
              : [{ lookup, snapshot, secretVersion: this.versionOf(lookup) }];
          }),
        lookups.length,
      ),
    findSnapshotsOrErrors: (keyIds: readonly string[]) => {
      this.idsRead.push(keyIds);
      return this.#read(
        () =>
          new Map(
            keyIds.flatMap((keyId) => {
              const found = this.broken.get(keyId) ?? this.snapshots.get(keyId);
              return found === undefined ? [] : [[keyId, found]];
            }),
          ),
      );
    },
  };

  /** Responds at once. */
  async importedSecrets(): Promise<ImportedSecrets> {
    this.importReads += 1;
    if (this.isUnavailable) throw new StoreUnavailable('postgres', undefined);
    return this.imports;
  }

  add(keyId: string): string {
    const secret = createSecret('tg', systemRandom);
    // Stored under the older encryption key: it is found all the same.
    this.secrets.set(vault.lookups(secret)[1]?.toString('hex') ?? '', keyId);
    this.change(keyId, '1.1');
    return secret;
  }

  /** Gives a key another secret, of the version 2, and keeps the one that it has until an instant. */
  rotate(keyId: string, previousUntilMs: number): string {
    const before = this.snapshots.get(keyId);
    if (before === undefined) throw new Error('no such key');
    const secret = this.add(keyId);
    this.versions.set(vault.lookups(secret)[1]?.toString('hex') ?? '', 2);
    const previousSecret = { version: before.secretVersion, validUntilMs: previousUntilMs };
    this.snapshots.set(keyId, { ...before, version: '2.1', secretVersion: 2, previousSecret });
    return secret;
  }

  versionOf(lookup: Buffer): number {
    return this.versions.get(lookup.toString('hex')) ?? 0;
  }

  change(keyId: string, version: string): void {
    this.snapshots.set(keyId, {
      keyId,
      version,
      enabled: true,
      expiresAtMs: null,
      plan: null,
      restrictions: null,
      secretVersion: 0,
      previousSecret: null,
    });
  }

  /** Responds to the oldest read with what the store held when the read began. */
  async respond(): Promise<void> {
    await until(() => this.reads.length > 0);
    this.reads.shift()?.respond();
  }

  #read<Found>(value: () => Found, lookups = 0): Promise<Found> {
    const snapshot = value();
    const read = Promise.withResolvers<Found>();
    this.reads.push({ reject: read.reject, respond: () => read.resolve(snapshot), lookups });
    return read.promise;
  }
}

interface Response {
  readonly error: Error | null;
  readonly entry: KeyEntry | undefined;
  readonly fresh?: boolean;
}

function confirm(
  keys: KeyCache,
  entry: KeyEntry,
): Promise<{ readonly entry: KeyEntry | undefined; readonly fresh: boolean }> {
  return new Promise((resolve) =>
    keys.confirm(entry, (confirmed, fresh) => resolve({ entry: confirmed, fresh })),
  );
}

const CLIENT = '192.0.2.1';

/** Queries that run together: for secrets, and as many for known keys. */
const QUERIES = 4;

describe('the key cache', () => {
  let store: HeldStore;
  let clock: ManualClock;
  beforeEach(() => {
    store = new HeldStore();
    clock = new ManualClock(1_000_000);
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** It knows already that no secret has come in from outside. */
  async function cacheOf(): Promise<KeyCache> {
    const keys = new KeyCache({ repository: store.repository, secrets: store, vault, clock });
    await load(keys, 'garbage');
    return keys;
  }

  function load(keys: KeyCache, secret: string, client = CLIENT): Promise<Response> {
    return new Promise((resolve) => {
      keys.load(secret, client, (error, entry, fresh) => resolve({ error, entry, fresh }));
    });
  }

  function reload(keys: KeyCache, entry: KeyEntry): Promise<Response> {
    return new Promise((resolve) => {
      keys.reload(entry, (error, reloaded) => resolve({ error, entry: reloaded }));
    });
  }

  async function loaded(keys: KeyCache, secret: string): Promise<KeyEntry> {
    const loading = load(keys, secret);
    await store.respond();
    const { entry } = await loading;
    if (entry === undefined) {
      throw new Error('not loaded');
    }
    return entry;
  }

  /** Takes up the queries for known keys, each with a key of its own, until the store responds. */
  async function reloadOthers(keys: KeyCache): Promise<readonly Promise<Response>[]> {
    const others: KeyEntry[] = [];
    for (let query = 1; query <= QUERIES; query += 1)
      others.push(await loaded(keys, store.add(`key_other_${query}`)));
    const reloading: Promise<Response>[] = [];
    for (const [index, entry] of others.entries()) {
      reloading.push(reload(keys, entry));
      await until(() => store.reads.length === index + 1);
    }
    return reloading;
  }

  it('finds a key at once after it was loaded, and counts hits and misses', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    expect(keys.find(secret)).toBeUndefined();
    const entry = await loaded(keys, secret);
    expect(entry.snapshot).toEqual(store.snapshots.get('key_a'));
    expect(keys.find(secret)).toBe(entry);
    expect(keys).toMatchObject({ hits: 1, misses: 1, size: 1 });
  });

  it('turns garbage away without a look-up, whatever its length', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const responses: Promise<Response>[] = [];
    for (const garbage of [
      '',
      'x',
      secret.slice(0, -1),
      `${secret}x`,
      secret.replace('_', '-'),
      'y'.repeat(100_000),
    ]) {
      expect(keys.find(garbage)).toBeUndefined();
      responses.push(load(keys, garbage));
    }
    expect(await Promise.all(responses)).toEqual(
      Array(6).fill({ error: null, entry: undefined, fresh: false }),
    );
    expect(store.reads).toHaveLength(0);
    // One for the first of them, one for all that came meanwhile.
    expect(store.importReads).toBeLessThanOrEqual(2);
  });

  it('reads a secret once for all that wait; it is fresh only for the first of them', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const responses = [load(keys, secret), load(keys, secret), load(keys, secret)];
    await store.respond();
    const [first, ...joined] = await Promise.all(responses);
    expect(first?.fresh).toBe(true);
    expect(joined).toEqual([
      { error: null, entry: first?.entry, fresh: false },
      { error: null, entry: first?.entry, fresh: false },
    ]);
    expect(store.reads).toHaveLength(0);
  });

  it('remembers for five seconds that a secret names no key', async () => {
    const keys = await cacheOf();
    const secret = createSecret('tg', systemRandom);
    const nothing = { error: null, entry: undefined };
    const reading = load(keys, secret);
    await store.respond();
    expect(await reading).toMatchObject(nothing);
    clock.advance(4999);
    expect(await load(keys, secret)).toMatchObject(nothing);
    expect(store.reads).toHaveLength(0);
    clock.advance(1);
    const again = load(keys, secret);
    await store.respond();
    expect(await again).toMatchObject(nothing);
  });

  it('has a secret looked up that was unknown, once any has come in from outside', async () => {
    const keys = await cacheOf();
    const secret = createSecret('tg', systemRandom);
    const reading = load(keys, secret);
    await store.respond();
    expect((await reading).entry).toBeUndefined();
    store.secrets.set(vault.lookups(secret)[0]?.toString('hex') ?? '', 'key_a');
    store.change('key_a', '1.1');
    expect((await load(keys, secret)).entry).toBeUndefined();
    store.imports = { version: 1, given: false, hashed: false };
    expect((await loaded(keys, secret)).snapshot.keyId).toBe('key_a');
  });

  it('has a secret without checksum looked up once any has come in from outside', async () => {
    const keys = await cacheOf();
    const secret = 'a-secret-that-comes-from-outside';
    store.secrets.set(vault.lookups(secret)[0]?.toString('hex') ?? '', 'key_a');
    store.change('key_a', '1.1');
    expect((await load(keys, secret)).entry).toBeUndefined();
    store.imports = { version: 1, given: true, hashed: false };
    expect((await loaded(keys, secret)).snapshot.keyId).toBe('key_a');
  });

  it('has a secret looked up by its digest once any key is found by that', async () => {
    const keys = await cacheOf();
    const secret = createSecret('tg', systemRandom);
    const lookup = vault.digestLookup(createHash('sha256').update(secret).digest());
    store.secrets.set(lookup.toString('hex'), 'key_a');
    store.change('key_a', '1.1');
    const loading = load(keys, secret);
    await until(() => store.reads.length === 1);
    expect(store.reads[0]?.lookups).toBe(2);
    // The first one comes in while the look-up by the secret itself is under way.
    store.imports = { version: 1, given: false, hashed: true };
    await store.respond();
    await until(() => store.reads.length === 1);
    expect(store.reads[0]?.lookups).toBe(4);
    await store.respond();
    expect((await loading).entry?.snapshot.keyId).toBe('key_a');
  });

  it('gives a secret that comes in while it is looked up to those who ask after that', async () => {
    const keys = await cacheOf();
    const secret = createSecret('tg', systemRandom);
    const early = load(keys, secret);
    await until(() => store.reads.length === 1);
    store.secrets.set(vault.lookups(secret)[0]?.toString('hex') ?? '', 'key_a');
    store.change('key_a', '1.1');
    store.imports = { version: 1, given: true, hashed: false };
    const late = load(keys, secret);
    await store.respond();
    expect((await early).entry).toBeUndefined();
    await store.respond();
    expect((await late).entry?.snapshot.keyId).toBe('key_a');
  });

  it('calls no secret unknown while the store does not say which were imported', async () => {
    const keys = await cacheOf();
    const secret = createSecret('tg', systemRandom);
    const reading = load(keys, secret);
    await store.respond();
    await reading;
    store.isUnavailable = true;
    for (const wrong of [secret, 'garbage'])
      expect(await load(keys, wrong)).toMatchObject({
        error: { code: 'store_unavailable' },
        entry: undefined,
      });
    store.isUnavailable = false;
    expect(await load(keys, secret)).toMatchObject({ error: null, entry: undefined });
  });

  it('reloads with a read that begins after the call, even while an older one runs', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    const older = reload(keys, entry);
    await until(() => store.reads.length === 1);
    store.change('key_a', '2.1');
    const late = [reload(keys, entry), reload(keys, entry)];
    await store.respond();
    expect((await older).entry?.snapshot.version).toBe('1.1');
    await store.respond();
    const [one, other] = await Promise.all(late);
    expect(one?.entry?.snapshot.version).toBe('2.1');
    expect(other?.entry).toBe(one?.entry);
    expect(keys.find(secret)).toBe(one?.entry);
    expect(store.reads).toHaveLength(0);
  });

  it('shares a reload among all calls that came before its read began', async () => {
    const keys = await cacheOf();
    const entry = await loaded(keys, store.add('key_a'));
    const others = await reloadOthers(keys);
    const waiting = [reload(keys, entry), reload(keys, entry)];
    store.change('key_a', '2.1');
    for (const other of others) {
      await store.respond();
      await other;
    }
    await store.respond();
    const [one, other] = await Promise.all(waiting);
    expect(one?.entry?.snapshot.version).toBe('2.1');
    expect(other?.entry).toBe(one?.entry);
    expect(store.reads).toHaveLength(0);
  });

  it('leaves an entry as it was when a reload brings a new one', async () => {
    const keys = await cacheOf();
    const entry = await loaded(keys, store.add('key_a'));
    store.change('key_a', '2.1');
    const reloading = reload(keys, entry);
    await store.respond();
    await reloading;
    expect(entry.snapshot.version).toBe('1.1');
  });

  it("forgets a key that a reload misses, but its secret may be another key's", async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    store.snapshots.delete('key_a');
    const reloading = reload(keys, entry);
    await store.respond();
    expect(await reloading).toEqual({ error: null, entry: undefined });
    expect(keys.find(secret)).toBeUndefined();
    expect(keys.size).toBe(0);
    store.secrets.set(vault.lookups(secret)[0]?.toString('hex') ?? '', 'key_b');
    store.change('key_b', '1.1');
    expect((await loaded(keys, secret)).snapshot.keyId).toBe('key_b');
  });

  it('has an entry for each of the two secrets of a key that is rotated', async () => {
    const keys = await cacheOf();
    const previous = store.add('key_a');
    const before = await loaded(keys, previous);
    const present = store.rotate('key_a', 5000);
    const [reloading, loading] = [reload(keys, before), load(keys, present)];
    await until(() => store.reads.length === 2);
    await store.respond();
    await store.respond();
    expect((await reloading).entry).toMatchObject({ secretVersion: 0, previousUntilMs: 5000 });
    expect((await loading).entry).toMatchObject({ secretVersion: 2, previousUntilMs: null });
    expect([previous, present].map((secret) => keys.find(secret)?.previousUntilMs)).toEqual([5000, null]);
    keys.drop('key_a');
    expect([previous, present].map((secret) => keys.find(secret))).toEqual([undefined, undefined]);
    expect(keys.size).toBe(0);
  });

  it('gives no entry to a secret that the key has no more, although it was read before', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    store.rotate('key_a', 5000);
    const rotated = store.snapshots.get('key_a');
    if (rotated !== undefined) store.snapshots.set('key_a', { ...rotated, previousSecret: null });
    const reloading = reload(keys, entry);
    await store.respond();
    expect(await reloading).toEqual({ error: null, entry: undefined });
    expect(keys.find(secret)).toBeUndefined();
  });

  it('forgets the key that had a secret before another one', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    const [lookup = ''] = store.secrets.keys();
    store.secrets.set(lookup, 'key_b');
    store.change('key_b', '1.1');
    const loading = load(keys, secret);
    await store.respond();
    expect((await loading).entry?.snapshot.keyId).toBe('key_b');
    keys.drop(entry.snapshot.keyId);
    expect(keys.find(secret)?.snapshot.keyId).toBe('key_b');
  });

  it('forgets a dropped key, and takes it back from a reload that was under way', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    keys.drop('key_a');
    keys.drop('key_unknown');
    expect(keys.find(secret)).toBeUndefined();
    const reloading = reload(keys, entry);
    await store.respond();
    const { entry: reloaded } = await reloading;
    expect(keys.find(secret)).toBe(reloaded);
  });

  it('bounds the reads that run and rejects what is too much of one client', async () => {
    const keys = await cacheOf();
    const garbage = () => load(keys, createSecret('tg', systemRandom));
    // The first is looked up at once, and 4000 wait until the requests that have arrived were read.
    const loading = Array.from({ length: 4001 }, garbage);
    expect((await garbage()).error).toMatchObject({ code: 'overloaded' });
    await until(() => store.reads.length === QUERIES);
    // Each secret has a look-up value for each of the two encryption keys.
    expect(store.reads.map(({ lookups }) => lookups)).toEqual([2, 200, 200, 200]);
    for (let read = 0; read < 41; read += 1) {
      await until(() => store.reads.length > 0);
      expect(store.reads.length).toBeLessThanOrEqual(QUERIES);
      expect(store.reads[0]?.lookups).toBeLessThanOrEqual(200);
      await store.respond();
    }
    const outcomes = await Promise.all(loading);
    expect(outcomes.filter(({ error, entry }) => error === null && entry === undefined)).toHaveLength(4001);
  });

  it('reads a key of another client with the next query, however many secrets wait', async () => {
    const keys = await cacheOf();
    const known = store.add('key_a');
    const flood = Array.from({ length: 3000 }, () => load(keys, createSecret('tg', systemRandom)));
    const found = load(keys, known, '192.0.2.2');
    // The one that runs already, and the next one.
    for (let read = 0; read < 2; read += 1) await store.respond();
    expect((await found).entry?.snapshot.keyId).toBe('key_a');
    for (let read = 0; read < 29; read += 1) await store.respond();
    await Promise.all(flood);
  });

  it('reloads known keys while unknown secrets use up their share of reads', async () => {
    const keys = await cacheOf();
    const entry = await loaded(keys, store.add('key_a'));
    // One alone, those of all other queries, and one that waits.
    const flood = Array.from({ length: 1 + (QUERIES - 1) * 100 + 1 }, () =>
      load(keys, createSecret('tg', systemRandom)),
    );
    await until(() => store.reads.length === QUERIES);
    const reloading = reload(keys, entry);
    await until(() => store.reads.length === QUERIES + 1);
    store.reads.pop()?.respond();
    expect((await reloading).entry?.snapshot.keyId).toBe('key_a');
    for (let read = 0; read < QUERIES + 1; read += 1) await store.respond();
    await Promise.all(flood);
  });

  it('reads at most a hundred known keys again with one query, the first at once', async () => {
    const keys = await cacheOf();
    const entries = [];
    for (let index = 0; index < 250; index += 1) entries.push(await loaded(keys, store.add(`key_${index}`)));
    const reloading = entries.map((entry) => reload(keys, entry));
    expect(store.idsRead.map((ids) => ids.length)).toEqual([1]);
    for (let read = 0; read < 4; read += 1) await store.respond();
    expect(store.idsRead.map((ids) => ids.length)).toEqual([1, 100, 100, 49]);
    const reloaded = await Promise.all(reloading);
    expect(reloaded.map(({ entry }) => entry?.snapshot.keyId)).toEqual(
      entries.map(({ snapshot }) => snapshot.keyId),
    );
  });

  it('paces reads of known keys one after another, and batches what comes meanwhile', async () => {
    const keys = await cacheOf();
    const entries = [];
    for (let index = 0; index < 50; index += 1) entries.push(await loaded(keys, store.add(`key_${index}`)));
    for (const entry of entries.splice(0, 2)) {
      const reloading = reload(keys, entry);
      await store.respond();
      await reloading;
    }
    let isDone = false;
    const reloading = Promise.all(entries.map((entry) => reload(keys, entry))).then(() => {
      isDone = true;
    });
    await until(() => {
      store.reads.shift()?.respond();
      return isDone;
    });
    await reloading;
    // At most one of them is not too soon after the second.
    expect(store.idsRead.length).toBeLessThanOrEqual(4);
  });

  it('reads a known key again whatever is wrong with others of its query', async () => {
    const keys = await cacheOf();
    const [broken, last] = [
      await loaded(keys, store.add('key_broken')),
      await loaded(keys, store.add('key_last')),
    ];
    const fault = new StoreUnavailable('postgres', undefined);
    store.broken.set('key_broken', fault);
    const others = await reloadOthers(keys);
    const reloading = [broken, last].map((entry) => reload(keys, entry));
    for (const _ of others) await store.respond();
    await store.respond();
    const [failed, found] = await Promise.all(reloading);
    expect(store.idsRead).toEqual([
      ...[['key_other_1'], ['key_other_2'], ['key_other_3'], ['key_other_4']],
      ['key_broken', 'key_last'],
    ]);
    expect(failed).toEqual({ error: fault, entry: undefined });
    expect(found?.entry?.snapshot.keyId).toBe('key_last');
  });

  it('takes an entry for unchecked that was not read or checked for eight seconds', async () => {
    const keys = await cacheOf();
    const entry = await loaded(keys, store.add('key_a'));
    clock.advance(7999);
    expect(keys.isUnchecked(entry, clock.monotonicMs())).toBe(false);
    clock.advance(1);
    expect(keys.isUnchecked(entry, clock.monotonicMs())).toBe(true);
    expect(keys.takeActive()).toEqual([entry]);
    expect(keys.isUnchecked(entry, clock.monotonicMs())).toBe(false);
  });

  it('has the entries checked that were used within the last minute', async () => {
    const keys = await cacheOf();
    const [idle, used] = [store.add('key_idle'), store.add('key_used')];
    for (const secret of [idle, used]) await loaded(keys, secret);
    for (let seconds = 0; seconds < 60; seconds += 3) {
      expect(keys.takeActive()).toHaveLength(2);
      keys.find(used);
      clock.advance(3000);
    }
    clock.advance(3000);
    expect(keys.takeActive().map(({ snapshot }) => snapshot.keyId)).toEqual(['key_used']);
    keys.find(idle);
    clock.advance(3000);
    expect(keys.takeActive().map(({ snapshot }) => snapshot.keyId)).toEqual(['key_idle', 'key_used']);
  });

  it('confirms an entry with a new read, and a key that is gone not at all', async () => {
    const keys = await cacheOf();
    const entry = await loaded(keys, store.add('key_a'));
    store.change('key_a', '2.1');
    const confirming = confirm(keys, entry);
    await store.respond();
    const current = await confirming;
    expect(current).toMatchObject({ entry: { snapshot: { version: '2.1' } }, fresh: true });
    store.snapshots.delete('key_a');
    const gone = confirm(keys, current.entry ?? entry);
    await store.respond();
    expect(await gone).toEqual({ entry: undefined, fresh: true });
    expect(store.reads).toHaveLength(0);
  });

  it('has a key read before its use when changes were not followed, as after a pause of the process', async () => {
    const keys = await cacheOf();
    const entry = await loaded(keys, store.add('key_a'));
    keys.follow([], clock.monotonicMs());
    clock.advance(2249);
    expect(keys.isUnchecked(entry, clock.monotonicMs())).toBe(false);
    clock.advance(1);
    expect(keys.isUnchecked(entry, clock.monotonicMs())).toBe(true);
    const confirming = confirm(keys, entry);
    store.change('key_a', '2.1');
    await store.respond();
    const { entry: read = entry } = await confirming;
    expect(keys.isUnchecked(read, clock.monotonicMs())).toBe(false);
    keys.follow([], clock.monotonicMs());
    expect(keys.isUnchecked(entry, clock.monotonicMs())).toBe(false);
  });

  it('keeps no key after a pause until it is known that the store does not respond', async () => {
    const keys = await cacheOf();
    const entry = await loaded(keys, store.add('key_a'));
    keys.follow([], clock.monotonicMs());
    clock.advance(3000);
    const confirming = confirm(keys, entry);
    for (let failed = 0; failed < 2; failed += 1) {
      await until(() => store.reads.length > 0);
      store.reads.shift()?.reject(new StoreUnavailable('postgres', undefined));
    }
    await until(() => store.reads.length > 0);
    keys.follow([], clock.monotonicMs());
    store.reads.shift()?.reject(new StoreUnavailable('postgres', undefined));
    expect(await confirming).toEqual({ entry, fresh: false });
  });

  it('waits after a pause for a read that hangs, and makes no other', async () => {
    const keys = await cacheOf();
    const entry = await loaded(keys, store.add('key_a'));
    keys.follow([], clock.monotonicMs());
    clock.advance(3000);
    jest.useFakeTimers();
    const confirming = confirm(keys, entry);
    await jest.advanceTimersByTimeAsync(2000);
    store.reads.shift()?.respond();
    expect(await confirming).toMatchObject({ fresh: true });
    await jest.advanceTimersByTimeAsync(1000);
    expect(store.reads).toHaveLength(0);
  });

  it('confirms each copy when changes may have been missed, and keeps it if the store is away by then', async () => {
    const keys = await cacheOf();
    const [changed, kept] = [store.add('key_a'), store.add('key_b')];
    const entries = [await loaded(keys, changed), await loaded(keys, kept)] as const;
    store.change('key_a', '2.1');
    keys.distrust();
    keys.follow([], clock.monotonicMs());
    expect(entries.map((entry) => keys.isUnchecked(entry, clock.monotonicMs()))).toEqual([true, true]);
    const reading = confirm(keys, entries[0]);
    await store.respond();
    expect(await reading).toMatchObject({ entry: { snapshot: { version: '2.1' } }, fresh: true });
    clock.advance(1000);
    const failing = confirm(keys, entries[1]);
    await until(() => store.reads.length > 0);
    store.reads.shift()?.reject(new StoreUnavailable('postgres', undefined));
    expect(await failing).toEqual({ entry: entries[1], fresh: false });
    // Not again before its time is over, although no change was followed meanwhile.
    clock.advance(2249);
    expect(keys.isUnchecked(entries[1], clock.monotonicMs())).toBe(false);
    clock.advance(1);
    expect(keys.isUnchecked(entries[1], clock.monotonicMs())).toBe(true);
  });

  it('drops the copies that a followed change makes outdated, and no newer ones', async () => {
    const keys = await cacheOf();
    const [changed, current, deleted] = [store.add('key_a'), store.add('key_b'), store.add('key_c')];
    store.change('key_b', '2.1');
    for (const secret of [changed, current, deleted]) await loaded(keys, secret);
    const changes = [
      { kind: 'key', id: 'key_a', version: 2 },
      { kind: 'key', id: 'key_b', version: 2 },
      { kind: 'key', id: 'key_c', version: null },
    ] as const;
    keys.follow(changes, clock.monotonicMs());
    expect([changed, current, deleted].map((secret) => keys.find(secret)?.snapshot.keyId)).toEqual([
      undefined,
      'key_b',
      undefined,
    ]);
  });

  it('calls a held copy current until it is dropped, another version replaces it or it is no longer checked', async () => {
    const keys = await cacheOf();
    const isCurrent = (entry: KeyEntry) => keys.isCurrent(entry, clock.monotonicMs());
    const entry = await loaded(keys, store.add('key_a'));
    expect(isCurrent(entry)).toBe(true);
    const reloading = reload(keys, entry);
    await store.respond();
    const reloaded = (await reloading).entry as KeyEntry;
    expect([entry, reloaded].map(isCurrent)).toEqual([true, true]);
    clock.advance(8000);
    expect(isCurrent(reloaded)).toBe(false);
    keys.takeActive();
    expect(isCurrent(reloaded)).toBe(true);
    store.change('key_a', '2.1');
    const changing = reload(keys, reloaded);
    await store.respond();
    const changed = (await changing).entry as KeyEntry;
    expect([entry, reloaded, changed].map(isCurrent)).toEqual([false, false, true]);
    keys.drop('key_a');
    expect(isCurrent(changed)).toBe(false);
  });

  it('reads a key again when the read began before a change that is known by then', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const loading = load(keys, secret);
    await until(() => store.reads.length > 0);
    store.change('key_a', '2.1');
    keys.follow([{ kind: 'key', id: 'key_a', version: 2 }], clock.monotonicMs());
    await store.respond();
    await store.respond();
    expect((await loading).entry?.snapshot.version).toBe('2.1');
  });

  it('confirms an entry while the store fails, and takes it for checked then', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    clock.advance(8000);
    const failing = confirm(keys, entry);
    await until(() => store.reads.length === 1);
    store.reads.shift()?.reject(new StoreUnavailable('postgres', undefined));
    expect(await failing).toEqual({ entry, fresh: false });
    expect(keys.isUnchecked(entry, clock.monotonicMs())).toBe(false);
    clock.advance(8000);
    expect(keys.isUnchecked(entry, clock.monotonicMs())).toBe(true);
    const hanging = confirm(keys, entry);
    await until(() => store.reads.length === 1);
    expect(await hanging).toEqual({ entry, fresh: false });
    expect(keys.find(secret)).toBe(entry);
  });

  it('gives a failure of the store to all that wait, and queries again the next time', async () => {
    const keys = await cacheOf();
    const secret = store.add('key_a');
    const down = new StoreUnavailable('postgres', undefined);
    const failing = [load(keys, secret), load(keys, secret)];
    await until(() => store.reads.length === 1);
    store.reads.shift()?.reject(down);
    for (const { error, entry } of await Promise.all(failing)) {
      expect(error).toBe(down);
      expect(entry).toBeUndefined();
    }
    const entry = await loaded(keys, secret);
    const reloading = reload(keys, entry);
    await until(() => store.reads.length === 1);
    store.reads.shift()?.reject(down);
    expect(await reloading).toEqual({ error: down, entry: undefined });
    expect(keys.find(secret)).toBe(entry);
  });
});
