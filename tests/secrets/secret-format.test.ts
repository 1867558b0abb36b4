import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { systemRandom } from '../../src/platform/random.ts';
import {
  createSecret,
  isWellFormedSecret,
  MAX_GENERATED_LENGTH,
  maskedSecret,
} from '../../src/secrets/secret-format.ts';
import { codePoint } from '../support/code-point.ts';

const prefixes = fc.stringMatching(/^[A-Za-z][A-Za-z0-9]{0,15}$/);
const bytes = (value: number) => ({ bytes: (count: number) => Buffer.alloc(count, value) });

describe('the format of secrets', () => {
  it('is the prefix, 30 random characters and 6 of checksum', () => {
    expect(createSecret('tg', systemRandom)).toMatch(/^tg_[0-9A-Za-z]{36}$/);
    expect(createSecret('tg', systemRandom)).not.toBe(createSecret('tg', systemRandom));
  });

  it('is the same for the same randomness, so that secrets stay valid over releases', () => {
    expect(createSecret('tg', bytes(0))).toBe('tg_0000000000000000000000000000004fdrUr');
  });

  it('is accepted under any prefix', () => {
    fc.assert(fc.property(prefixes, (prefix) => isWellFormedSecret(createSecret(prefix, systemRandom))));
  });

  it('catches every change of one character', () => {
    const printable = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
    fc.assert(
      fc.property(prefixes, fc.nat(), printable, (prefix, position, replacement) => {
        const secret = createSecret(prefix, systemRandom);
        const at = position % secret.length;
        fc.pre(secret[at] !== replacement);
        expect(isWellFormedSecret(secret.slice(0, at) + replacement + secret.slice(at + 1))).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  it('catches two neighbours that changed places, and a missing or added character', () => {
    fc.assert(
      fc.property(fc.nat(), (position) => {
        const secret = createSecret('tg', systemRandom);
        const at = position % (secret.length - 1);
        const [one = '', other = ''] = secret.slice(at, at + 2);
        fc.pre(one !== other);
        expect(isWellFormedSecret(secret.slice(0, at) + other + one + secret.slice(at + 2))).toBe(false);
        expect(isWellFormedSecret(secret.slice(0, at) + secret.slice(at + 1))).toBe(false);
        expect(isWellFormedSecret(`${secret.slice(0, at)}0${secret.slice(at)}`)).toBe(false);
      }),
    );
  });

  it('rejects garbage of any length', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, maxLength: 200 }), (text) => !isWellFormedSecret(text)),
    );
    expect(isWellFormedSecret('')).toBe(false);
    expect(isWellFormedSecret(`${createSecret('tg', systemRandom)}\n`)).toBe(false);
    expect(isWellFormedSecret('x'.repeat(1_000_000))).toBe(false);
    expect(isWellFormedSecret(maskedSecret('tg'))).toBe(false);
  });

  it('is never longer than the bound that the hot path relies on', () => {
    fc.assert(
      fc.property(prefixes, (prefix) => createSecret(prefix, systemRandom).length <= MAX_GENERATED_LENGTH),
    );
    expect(createSecret('a'.repeat(16), systemRandom)).toHaveLength(MAX_GENERATED_LENGTH);
  });

  it('uses each of the 62 characters about as often as any other', () => {
    const counts = new Map<string, number>();
    for (let made = 0; made < 4000; made += 1) {
      for (const character of createSecret('tg', systemRandom).slice(3, 33)) {
        counts.set(character, (counts.get(character) ?? 0) + 1);
      }
    }
    expect(counts.size).toBe(62);
    // 1935 expected each, standard deviation 44: seven of them fail once in ten billion runs.
    expect(Math.min(...counts.values())).toBeGreaterThan(1935 - 7 * 44);
    expect(Math.max(...counts.values())).toBeLessThan(1935 + 7 * 44);
  });
});
