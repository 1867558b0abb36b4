import { beforeEach, describe, expect, it } from '@jest/globals';
import { KeyEntries } from '../../../src/keys/cache/key-entries.ts';
import { KeyEntry } from '../../../src/keys/cache/key-entry.ts';

function entryOf(keyId: string, digest: string): KeyEntry {
  const snapshot = {
    keyId,
    version: '1.1',
    enabled: true,
    expiresAtMs: null,
    plan: null,
    restrictions: null,
  };
  const secrets = { secretVersion: 0, previousSecret: null };
  const entry = KeyEntry.of({ ...snapshot, ...secrets }, { secretVersion: 0, digest }, 0);
  if (entry === undefined) throw new Error('the key has another secret');
  return entry;
}

describe('the entries of keys', () => {
  let entries: KeyEntries;
  beforeEach(() => {
    entries = new KeyEntries();
  });

  it('are at most 100 000, and the least recently used one goes', () => {
    for (let index = 0; index < 100_000; index += 1) entries.add(entryOf(`key_${index}`, `${index}`));
    expect(entries.get('0')?.snapshot.keyId).toBe('key_0');
    entries.add(entryOf('key_new', 'new'));
    expect(entries.size).toBe(100_000);
    expect(entries.get('1')).toBeUndefined();
    const found = ['0', '2', 'new'].map((digest) => entries.get(digest)?.snapshot.keyId);
    expect(found).toEqual(['key_0', 'key_2', 'key_new']);
    // A key whose entry has gone can come back, and be removed.
    entries.deleteKey('key_1');
    expect(entries.size).toBe(100_000);
    entries.add(entryOf('key_1', '1'));
    entries.deleteKey('key_1');
    expect(entries.size).toBe(99_999);
  });

  it('of all secrets of a key are removed with it, those of others stay', () => {
    for (const digest of ['a', 'b', 'c']) entries.add(entryOf('key_a', digest));
    entries.add(entryOf('key_b', 'd'));
    entries.delete('b');
    entries.deleteKey('key_a');
    expect(['a', 'b', 'c', 'd'].map((digest) => entries.get(digest)?.snapshot.keyId)).toEqual([
      ...[undefined, undefined, undefined],
      'key_b',
    ]);
  });

  it('of a secret that was removed may be those of another key', () => {
    for (const digest of ['a', 'b', 'c']) entries.add(entryOf('key_a', digest));
    entries.delete('c');
    entries.add(entryOf('key_b', 'c'));
    expect(entries.ofKey('key_a').map(({ digest }) => digest)).toEqual(['a', 'b']);
    entries.deleteKey('key_a');
    expect(entries.get('c')?.snapshot.keyId).toBe('key_b');
  });

  it('pass from one key to another with the secret', () => {
    entries.add(entryOf('key_a', 'a'));
    entries.add(entryOf('key_b', 'a'));
    entries.deleteKey('key_a');
    expect(entries.get('a')?.snapshot.keyId).toBe('key_b');
    entries.deleteKey('key_b');
    expect(entries.size).toBe(0);
  });
});
