import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inexactNumberIn, isExactNumber } from '../../src/platform/text/exact-numbers.ts';
import { InvalidYaml, parseYaml } from '../../src/platform/text/yaml.ts';

/** Whether a JSON number is the same as a double's shortest text, by exact arithmetic with fractions. */
function isKept(literal: string): boolean {
  const value = Number(literal);
  if (!Number.isFinite(value)) return false;
  const [a, b] = [fraction(literal), fraction(String(value))];
  return a.numerator * b.denominator === b.numerator * a.denominator;
}

function fraction(literal: string): { readonly numerator: bigint; readonly denominator: bigint } {
  const [mantissa = '', power = '0'] = literal.toLowerCase().split('e');
  const [whole = '', decimals = ''] = mantissa.split('.');
  const exponent = Number(power) - decimals.length;
  const digits = BigInt(`${whole}${decimals}`.replace('-', ''));
  return {
    numerator: (literal.startsWith('-') ? -digits : digits) * 10n ** BigInt(Math.max(0, exponent)),
    denominator: 10n ** BigInt(Math.max(0, -exponent)),
  };
}

const literals = fc.stringMatching(/^-?(0|[1-9]\d{0,20})(\.\d{1,20})?([eE][+-]?\d{1,3})?$/);

describe('a number of a JSON text', () => {
  it.each([
    '0',
    '-0',
    '0.0e999',
    '1.0',
    '1e2',
    '0.1',
    '100e-2',
    '9007199254740992',
    '1e308',
    '12.50',
    '5e-324',
  ])('is as JavaScript holds it: %s', (literal) => {
    expect(isExactNumber(literal)).toBe(true);
  });

  it.each([
    '1e400',
    '-1e400',
    '1e-400',
    '9007199254740993',
    '12345678901234567890',
    '0.12345678901234567890',
    '123456789012345.678901',
    '1e99999999999999999999',
  ])('is not as JavaScript holds it: %s', (literal) => {
    expect(isExactNumber(literal)).toBe(false);
  });

  it('is exact if its double is the same number in decimals', () => {
    fc.assert(
      fc.property(literals, (literal) => {
        expect(isExactNumber(literal)).toBe(isKept(literal));
      }),
      { numRuns: 300 },
    );
  });

  it('is exact where JavaScript has written it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(inexactNumberIn(JSON.stringify(value))).toBeUndefined();
      }),
    );
  });

  it('is named by its path, and not looked for in texts and names', () => {
    expect(
      inexactNumberIn('{"a":"1e400 \\" 1e400 \\\\","1e400":[1,{"b, [":"}"},{"c\\u0041" : [ 1e400 ]}]}'),
    ).toEqual(['1e400', '2', 'cA', '0']);
    expect(inexactNumberIn('1e400')).toEqual([]);
    expect(inexactNumberIn('[[],{},-12345678901234567890]')).toEqual(['2']);
  });

  it('takes no longer for a long run of zeros than for other digits', () => {
    const zeros = '0'.repeat(1_000_000);
    expect(isExactNumber(`1${zeros}1`)).toBe(false);
    expect(isExactNumber(`0.${zeros}1`)).toBe(false);
    expect(isExactNumber(`0.${zeros}`)).toBe(true);
  });
});

describe('a number of a YAML text', () => {
  it.each(['a: 9007199254740992', 'a: 0x1F', 'a: 0o17', 'a: "1e400"', 'a: 1.5', '1: x', 'a: 1e400x'])(
    'is as JavaScript holds it: %s',
    (text) => {
      expect(parseYaml(text)).toBeTruthy();
    },
  );

  it.each([
    'a: 1e400',
    'a: 12345678901234567890',
    'a: .inf',
    'a: -.inf',
    'a: .nan',
    'a: 0x1FFFFFFFFFFFFFFF',
    '12345678901234567890: x',
    'a: &b [1e400]\nc: *b',
    '{"a": [1, {"b": 1e400}]}',
  ])('is rejected with its place: %s', (text) => {
    const faultsOf = (): readonly string[] => {
      try {
        parseYaml(text);
      } catch (error) {
        if (error instanceof InvalidYaml) return error.faults;
      }
      return [];
    };
    expect(faultsOf()).toEqual([expect.stringMatching(/^line 1, column \d+: [^:]*: must be a number/)]);
  });
});
