import fc from 'fast-check';

const SURROGATES_START = 0xd800;
const SURROGATES = 0x800;

/**
 * Any code point but half of a surrogate pair, to be the `unit` of `fc.string`. The package's own unit for them, `binary`, makes a table of all of
 * them in each test file, which takes a second.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .nat(0x10ffff - SURROGATES)
  .map(
    (index) => String.fromCodePoint(index < SURROGATES_START ? index : index + SURROGATES),
    indexOfCodePoint,
  );

/** The way back, by which `fc.string` knows that it may use and shrink texts that are dangerous, like `__proto__`. */
function indexOfCodePoint(text: unknown): number {
  if (typeof text !== 'string' || [...text].length !== 1 || !text.isWellFormed())
    throw new Error('not a code point');
  const code = text.codePointAt(0) ?? 0;
  return code < SURROGATES_START ? code : code - SURROGATES;
}
