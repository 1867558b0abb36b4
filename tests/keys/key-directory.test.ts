import { beforeEach, describe, expect, it } from '@jest/globals';
import { StoreUnavailable } from '../../src/errors.ts';
import type { KeyGrant } from '../../src/keys/consumer-key.ts';
import { KeyDirectory, type KeyDirectoryOptions, type KeyEntry } from '../../src/keys/key-directory.ts';
import { createSecret } from '../../src/keys/secret-format.ts';
import { SecretVault } from '../../src/keys/secret-vault.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

const vault = new SecretVault([Buffer.alloc(32, 1), Buffer.alloc(32, 2)], systemRandom);

/** A store that answers when the test says so, in the order of its choice. */
class HeldStore implements Pick<KeyDirectoryOptions, 'repository'> {
  readonly grants = new Map<string, KeyGrant>();
  readonly secrets = new Map<string, string>();
  readonly reads: { answer(): void; reject(error: Error): void; readonly lookups: number }[] = [];
  readonly repository = {
    findGrantsByLookup: (lookups: readonly Buffer[]) =>
      this.#read(
        () =>
          lookups.flatMap((lookup) => {
            const grant = this.grants.get(this.secrets.get(lookup.toString('hex')) ?? '');
            return grant === undefined ? [] : [{ lookup, grant }];
          }),
        lookups.length,
      ),
    findGrantById: (keyId: string) => this.#read(() => this.grants.get(keyId)),
  };

  add(keyId: string): string {
    const secret = createSecret('tg', systemRandom);
    // Stored under the older encryption key: it is found all the same.
    this.secrets.set(vault.lookups(secret)[1]?.toString('hex') ?? '', keyId);
    this.change(keyId, '1.1');
    return secret;
  }

  change(keyId: string, version: string): void {
    this.grants.set(keyId, { keyId, version, enabled: true, expiresAtMs: null, plan: null });
  }

  /** Answers the oldest read with what the store held when the read began. */
  async answer(): Promise<void> {
    await until(() => this.reads.length > 0);
    this.reads.shift()?.answer();
  }

  #read<Found>(value: () => Found, lookups = 0): Promise<Found> {
    const snapshot = value();
    const read = Promise.withResolvers<Found>();
    this.reads.push({ reject: read.reject, answer: () => read.resolve(snapshot), lookups });
    return read.promise;
  }
}

interface Answer {
  readonly error: Error | null;
  readonly entry: KeyEntry | undefined;
  readonly fresh?: boolean;
}

function confirm(keys: KeyDirectory, entry: KeyEntry): Promise<KeyEntry | undefined> {
  return new Promise((resolve) => keys.confirm(entry, resolve));
}

describe('the directory of keys', () => {
  let store: HeldStore;
  let clock: ManualClock;
  beforeEach(() => {
    store = new HeldStore();
    clock = new ManualClock(1_000_000);
  });

  function directory(bounds: Partial<KeyDirectoryOptions> = {}): KeyDirectory {
    return new KeyDirectory({ repository: store.repository, vault, clock, ...bounds });
  }

  function load(keys: KeyDirectory, secret: string): Promise<Answer> {
    return new Promise((resolve) => {
      keys.load(secret, (error, entry, fresh) => resolve({ error, entry, fresh }));
    });
  }

  function reload(keys: KeyDirectory, entry: KeyEntry): Promise<Answer> {
    return new Promise((resolve) => {
      keys.reload(entry, (error, reloaded) => resolve({ error, entry: reloaded }));
    });
  }

  async function loaded(keys: KeyDirectory, secret: string): Promise<KeyEntry> {
    const loading = load(keys, secret);
    await store.answer();
    const { entry } = await loading;
    if (entry === undefined) {
      throw new Error('not loaded');
    }
    return entry;
  }

  it('finds a key at once after it was loaded, and counts hits and misses', async () => {
    const keys = directory();
    const secret = store.add('key_a');
    expect(keys.find(secret)).toBeUndefined();
    const entry = await loaded(keys, secret);
    expect(entry.grant).toEqual(store.grants.get('key_a'));
    expect(keys.find(secret)).toBe(entry);
    expect(keys).toMatchObject({ hits: 1, misses: 1, size: 1 });
  });

  it('turns garbage away without a read, whatever its length', () => {
    const keys = directory();
    const secret = store.add('key_a');
    const answers: Answer[] = [];
    for (const garbage of [
      '',
      'x',
      secret.slice(0, -1),
      `${secret}x`,
      secret.replace('_', '-'),
      'y'.repeat(100_000),
    ]) {
      expect(keys.find(garbage)).toBeUndefined();
      keys.load(garbage, (error, entry, fresh) => answers.push({ error, entry, fresh }));
    }
    expect(answers).toEqual(Array(6).fill({ error: null, entry: undefined, fresh: false }));
    expect(store.reads).toHaveLength(0);
  });

  it('reads a secret once for all requests that wait for it, and is fresh only for the one that started the read', async () => {
    const keys = directory();
    const secret = store.add('key_a');
    const answers = [load(keys, secret), load(keys, secret), load(keys, secret)];
    await store.answer();
    const [first, ...joined] = await Promise.all(answers);
    expect(first?.fresh).toBe(true);
    expect(joined).toEqual([
      { error: null, entry: first?.entry, fresh: false },
      { error: null, entry: first?.entry, fresh: false },
    ]);
    expect(store.reads).toHaveLength(0);
  });

  it('remembers for five seconds that a secret names no key', async () => {
    const keys = directory();
    const secret = createSecret('tg', systemRandom);
    const nothing = { error: null, entry: undefined };
    const reading = load(keys, secret);
    await store.answer();
    expect(await reading).toMatchObject(nothing);
    clock.advance(4999);
    expect(await load(keys, secret)).toMatchObject(nothing);
    expect(store.reads).toHaveLength(0);
    clock.advance(1);
    const again = load(keys, secret);
    await store.answer();
    expect(await again).toMatchObject(nothing);
  });

  it('reloads with a read that begins after the call, even while an older read is running', async () => {
    const keys = directory();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    const older = reload(keys, entry);
    await until(() => store.reads.length === 1);
    store.change('key_a', '2.1');
    const late = [reload(keys, entry), reload(keys, entry)];
    await store.answer();
    expect((await older).entry?.grant.version).toBe('1.1');
    await store.answer();
    const [one, other] = await Promise.all(late);
    expect(one?.entry?.grant.version).toBe('2.1');
    expect(other?.entry).toBe(one?.entry);
    expect(keys.find(secret)).toBe(one?.entry);
    expect(store.reads).toHaveLength(0);
  });

  it('shares a reload among all calls that came before its read began', async () => {
    const keys = directory({ maxLookups: 1 });
    const [a, b] = [await loaded(keys, store.add('key_a')), await loaded(keys, store.add('key_b'))];
    const occupying = reload(keys, a);
    const waiting = [reload(keys, b), reload(keys, b)];
    store.change('key_b', '2.1');
    await store.answer();
    await occupying;
    await store.answer();
    const [one, other] = await Promise.all(waiting);
    expect(one?.entry?.grant.version).toBe('2.1');
    expect(other?.entry).toBe(one?.entry);
    expect(store.reads).toHaveLength(0);
  });

  it('leaves an entry as it was when a reload brings a new one', async () => {
    const keys = directory();
    const entry = await loaded(keys, store.add('key_a'));
    store.change('key_a', '2.1');
    const reloading = reload(keys, entry);
    await store.answer();
    await reloading;
    expect(entry.grant.version).toBe('1.1');
  });

  it('forgets a key that a reload does not find any more, and asks no more for its secret', async () => {
    const keys = directory();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    store.grants.delete('key_a');
    const reloading = reload(keys, entry);
    await store.answer();
    expect(await reloading).toEqual({ error: null, entry: undefined });
    expect(keys.find(secret)).toBeUndefined();
    expect(keys.size).toBe(0);
    expect(await load(keys, secret)).toMatchObject({ error: null, entry: undefined });
    expect(store.reads).toHaveLength(0);
  });

  it('forgets a key that is dropped, and takes it back from a reload that was under way', async () => {
    const keys = directory();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    keys.drop('key_a');
    keys.drop('key_unknown');
    expect(keys.find(secret)).toBeUndefined();
    const reloading = reload(keys, entry);
    await store.answer();
    expect(keys.find(secret)).toBe((await reloading).entry);
  });

  it('remembers at most as many keys as it is told, and forgets the one unused for longest', async () => {
    const keys = directory({ maxEntries: 2 });
    const [a, b, c] = [store.add('key_a'), store.add('key_b'), store.add('key_c')];
    await loaded(keys, a);
    await loaded(keys, b);
    keys.find(a);
    await loaded(keys, c);
    expect(keys.size).toBe(2);
    expect([a, b, c].map((secret) => keys.find(secret)?.grant.keyId)).toEqual(['key_a', undefined, 'key_c']);
    keys.drop('key_b');
    expect(keys.size).toBe(2);
  });

  it('remembers at most as many unknown secrets as it is told', async () => {
    const keys = directory({ maxUnknown: 1 });
    const [one, other] = [createSecret('tg', systemRandom), createSecret('tg', systemRandom)];
    for (const secret of [one, other]) {
      const reading = load(keys, secret);
      await store.answer();
      await reading;
    }
    expect(await load(keys, other)).toMatchObject({ entry: undefined });
    expect(store.reads).toHaveLength(0);
    void load(keys, one);
    await until(() => store.reads.length === 1);
  });

  it('bounds the reads that run, reads up to a hundred secrets with one, and refuses what is too much as overloaded', async () => {
    const keys = directory({ maxLookups: 2 });
    const known = store.add('key_a');
    const answers = Array.from({ length: 1999 }, () => load(keys, createSecret('tg', systemRandom)));
    const found = load(keys, known);
    expect((await load(keys, createSecret('tg', systemRandom))).error).toMatchObject({ code: 'overloaded' });
    // Each secret has a look-up value for each of the two encryption keys.
    expect(store.reads.map(({ lookups }) => lookups)).toEqual([2, 2]);
    for (let read = 0; read < 22; read += 1) {
      await until(() => store.reads.length > 0);
      expect(store.reads.length).toBeLessThanOrEqual(2);
      expect(store.reads[0]?.lookups).toBeLessThanOrEqual(200);
      await store.answer();
    }
    const outcomes = await Promise.all(answers);
    expect(outcomes.filter(({ error, entry }) => error === null && entry === undefined)).toHaveLength(1999);
    expect((await found).entry?.grant.keyId).toBe('key_a');
  });

  it('reloads known keys while unknown secrets take all of their own reads', async () => {
    const keys = directory({ maxLookups: 1 });
    const entry = await loaded(keys, store.add('key_a'));
    const flood = [
      load(keys, createSecret('tg', systemRandom)),
      load(keys, createSecret('tg', systemRandom)),
    ];
    const reloading = reload(keys, entry);
    await until(() => store.reads.length === 2);
    store.reads.pop()?.answer();
    expect((await reloading).entry?.grant.keyId).toBe('key_a');
    await store.answer();
    await store.answer();
    await Promise.all(flood);
  });

  it('confirms a young entry at once, an older one with a new read, and a key that is gone not at all', async () => {
    const keys = directory();
    const entry = await loaded(keys, store.add('key_a'));
    clock.advance(3999);
    expect(await confirm(keys, entry)).toBe(entry);
    clock.advance(1);
    store.change('key_a', '2.1');
    const confirming = confirm(keys, entry);
    await store.answer();
    const current = await confirming;
    expect(current?.grant.version).toBe('2.1');
    store.grants.delete('key_a');
    clock.advance(4000);
    const gone = confirm(keys, current ?? entry);
    await store.answer();
    expect(await gone).toBeUndefined();
    expect(store.reads).toHaveLength(0);
  });

  it('confirms an old entry as it is while the store fails or does not answer, and asks again only seconds later', async () => {
    const keys = directory();
    const secret = store.add('key_a');
    const entry = await loaded(keys, secret);
    clock.advance(4000);
    const failing = confirm(keys, entry);
    await until(() => store.reads.length === 1);
    store.reads.shift()?.reject(new StoreUnavailable('postgres', undefined));
    expect(await failing).toBe(entry);
    expect(await confirm(keys, entry)).toBe(entry);
    expect(store.reads).toHaveLength(0);
    clock.advance(4000);
    const hanging = confirm(keys, entry);
    await until(() => store.reads.length === 1);
    expect(await hanging).toBe(entry);
    expect(keys.find(secret)).toBe(entry);
  });

  it('gives the failure of the store to all who wait, keeps what it has, and asks again the next time', async () => {
    const keys = directory();
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
