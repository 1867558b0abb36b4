import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault, UnreadableSecret } from '../../src/secrets/secret-vault.ts';

const OLD = Buffer.alloc(32, 1);
const NEW = Buffer.alloc(32, 2);
const vault = new SecretVault([OLD], systemRandom);
const rotated = new SecretVault([NEW, OLD], systemRandom);

describe('the vault', () => {
  it('opens what it sealed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (secret, keyId) => {
        expect(vault.open(keyId, vault.seal(keyId, secret))).toBe(secret);
      }),
    );
  });

  it('seals the same secret differently each time', () => {
    expect(vault.seal('key_1', 'secret')).not.toEqual(vault.seal('key_1', 'secret'));
  });

  it('does not open a blob that was moved to another key', () => {
    expect(() => vault.open('key_2', vault.seal('key_1', 'secret'))).toThrow(UnreadableSecret);
  });

  it('does not open a blob with any bit changed, or cut short, or made longer', () => {
    const sealed = vault.seal('key_1', 'tg_secret');
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => vault.open('key_1', changed)).toThrow(UnreadableSecret);
    }
    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => vault.open('key_1', sealed.subarray(0, length))).toThrow(UnreadableSecret);
    }
    expect(() => vault.open('key_1', Buffer.concat([sealed, Buffer.of(0)]))).toThrow(UnreadableSecret);
  });

  it('opens what older encryption keys sealed, and seals under the first', () => {
    expect(rotated.open('key_1', vault.seal('key_1', 'secret'))).toBe('secret');
    expect(rotated.lookups('secret')).toEqual([rotated.lookup('secret'), vault.lookup('secret')]);
    const onlyNew = new SecretVault([NEW], systemRandom);
    expect(onlyNew.open('key_1', rotated.seal('key_1', 'secret'))).toBe('secret');
    expect(() => vault.open('key_1', rotated.seal('key_1', 'secret'))).toThrow(/not among ENCRYPTION_KEY/);
  });

  it('makes repeatable fingerprints that differ by secret and by encryption key', () => {
    expect(vault.lookup('secret')).toEqual(new SecretVault([OLD], systemRandom).lookup('secret'));
    expect(vault.lookup('secret')).toHaveLength(32);
    expect(vault.lookup('secret')).not.toEqual(vault.lookup('secret2'));
    expect(vault.lookup('secret')).not.toEqual(rotated.lookup('secret'));
  });

  it('reads what the first release stored', () => {
    const sealed = Buffer.from(SEALED_BY_THE_FIRST_RELEASE, 'base64');
    expect(vault.open('key_1', sealed)).toBe('secret');
    expect(vault.lookup('secret').toString('base64')).toBe(LOOKUP_OF_THE_FIRST_RELEASE);
  });

  it('rejects encryption keys of another length, and none at all', () => {
    expect(() => new SecretVault([randomBytes(31)], systemRandom)).toThrow('32 bytes');
    expect(() => new SecretVault([], systemRandom)).toThrow('needs an encryption key');
  });

  it('names no secret in what it throws', () => {
    const sealed = vault.seal('key_1', 'tg_private');
    try {
      vault.open('key_2', sealed);
    } catch (error) {
      expect(String((error as Error).stack)).not.toContain('tg_private');
    }
    expect.assertions(1);
  });
});

const SEALED_BY_THE_FIRST_RELEASE = 'AaqhEfAHBwcHBwcHBwcHBwdebNCBYoSwcnN0W+SkFxoeoBRCuV6P';
const LOOKUP_OF_THE_FIRST_RELEASE = '/CqpmPJSd6hlNXVA6lpoGAGVWyKs8ZSzB+xOEn26kRw=';
