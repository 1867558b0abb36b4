import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { csvFile } from '../../src/platform/text/csv.ts';
import { codePoint } from '../support/code-point.ts';

const file = (columns: string[], rows: (string | number | null)[][]) => [...csvFile(columns, rows)].join('');

describe('a CSV file', () => {
  it('has its header row even without rows', () => {
    expect(file(['start', 'requests'], [])).toBe('start,requests\r\n');
  });

  it('leaves the cell of null empty and numbers as they are', () => {
    expect(file(['a', 'b'], [[null, -1.5]])).toBe('a,b\r\n,-1.5\r\n');
  });

  it.each([
    ...['=1+1', '+1', '-1', '@SUM(A1)', '\tx', '\rx', '\nx'],
    // In East Asian locales spreadsheets take these for the characters of ASCII.
    ...['\uff1d1+1', '\uff0b1', '\uff0d1', '\uff20SUM(A1)'],
  ])('disarms the formula %j', (text) => {
    expect(file(['a'], [[text]]).replaceAll('"', '')).toBe(`a\r\n'${text}\r\n`);
  });

  it.each([
    ['x;=1+1;y', '"x;=1+1;y"'],
    ['x\t=1+1', '"x\t=1+1"'],
  ])('hides no formula behind the separator of another dialect: %j', (text, cell) => {
    expect(file(['a'], [[text]])).toBe(`a\r\n${cell}\r\n`);
  });

  it('comes in chunks of bounded length', () => {
    const chunks = [
      ...csvFile(
        ['a'],
        Array.from({ length: 5000 }, () => ['x'.repeat(20)]),
      ),
    ];
    expect(chunks.length).toBeGreaterThan(5);
    expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan(20_000);
  });

  it('gives back any text to a reader of RFC 4180, but for the quote before formulas', () => {
    const cell = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.array(fc.constantFrom('"', ',', '\r', '\n', '=', 'a')).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell), { minLength: 1 }), (rows) => {
        const plain = rows.map((row) => row.map((text) => (FORMULA.test(text) ? `'${text}` : text)));
        expect(read(file(['a', 'b'], rows))).toEqual([['a', 'b'], ...plain]);
      }),
    );
  });
});

const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** RFC 4180 section 2, character by character. */
function read(text: string): readonly (readonly string[])[] {
  const rows: string[][] = [[]];
  let cell = '';
  let isQuoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? '';
    if (character === '"' && isQuoted && text[index + 1] === '"') {
      cell += '"';
      index += 1;
    } else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (character === ',' || text.startsWith('\r\n', index))) {
      rows.at(-1)?.push(cell);
      cell = '';
      if (character === '\r') {
        rows.push([]);
        index += 1;
      }
    } else cell += character;
  }
  return rows.slice(0, -1);
}
