/** The rule for numbers in JSON and YAML that come from outside, as the end of a sentence. */
export const EXACT_NUMBER_RULE =
  'must be a number that a double holds exactly as written, or else a string: 1e400 and 12345678901234567890 would become other values';

/**
 * The path to the first number of a JSON text that JavaScript would change: it would be infinite, zero or rounded. Undefined if there is
 * none. The text must be well-formed.
 */
export function inexactNumberIn(json: string): readonly string[] | undefined {
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at);
    else if (isNumberStart(code)) {
      const end = endOfNumber(json, at);
      if (!isExactNumber(json.slice(at, end))) return pathTo(json, at);
      at = end - 1;
    }
  }
  return undefined;
}

/** As many decimal digits survive any conversion to a double and back. */
const SAFE_LENGTH = 15;

/** Whether a decimal number becomes a double that is written as the same number: `1.0` does as 1, `12345678901234567890` does not. */
export function isExactNumber(literal: string): boolean {
  if (literal.length <= SAFE_LENGTH && !/e/i.test(literal)) return true;
  const value = Number(literal);
  return Number.isFinite(value) && isSameDecimal(literal, String(value));
}

function isSameDecimal(one: string, other: string): boolean {
  const [a, b] = [decimalOf(one), decimalOf(other)];
  return a.digits === b.digits && (a.digits === '' || (a.exponent === b.exponent && a.sign === b.sign));
}

/** The number as 0.`digits` times ten to the power of `exponent`, without zeros at either end; no digits for zero. */
function decimalOf(literal: string): {
  readonly sign: boolean;
  readonly digits: string;
  readonly exponent: number;
} {
  const [mantissa = '', power = '0'] = literal.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace(/^[+-]/, '').split('.');
  const all = whole + fraction;
  const digits = all.replace(/^0+/, '');
  const exponent = Number(power) + whole.length - (all.length - digits.length);
  return { sign: literal.startsWith('-'), digits: withoutEndZeros(digits), exponent };
}

/** A regular expression would try each of many zeros in the middle as the first of the last ones. */
function withoutEndZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const [ZERO, NINE] = [0x30, 0x39];

function isNumberStart(code: number): boolean {
  return code === MINUS || (code >= ZERO && code <= NINE);
}

/** Where the string that begins at `start` has its closing quote. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  for (; at < json.length && json.charCodeAt(at) !== QUOTE; at += 1) {
    if (json.charCodeAt(at) === BACKSLASH) at += 1;
  }
  return at;
}

const NUMBER = /[-+.\deE]+/y;

function endOfNumber(json: string, start: number): number {
  NUMBER.lastIndex = start;
  NUMBER.test(json);
  return NUMBER.lastIndex;
}

/** An object or a list that is open where a text is looked at. */
interface Level {
  readonly isList: boolean;
  index: number;
  name: string;
}

/** The names and indexes that lead to the value at `target`. */
function pathTo(json: string, target: number): readonly string[] {
  const levels: Level[] = [];
  let lastString = '';
  for (let at = 0; at < target; at += 1) {
    const character = json[at];
    const level = levels.at(-1);
    if (character === '"') {
      const end = endOfString(json, at);
      lastString = json.slice(at, end + 1);
      at = end;
    } else if (character === '{' || character === '[') {
      levels.push({ isList: character === '[', index: 0, name: '' });
    } else if (character === '}' || character === ']') levels.pop();
    else if (level !== undefined && character === ',') level.index += 1;
    else if (level !== undefined && character === ':') level.name = String(JSON.parse(lastString));
  }
  return levels.map(({ isList, index, name }) => (isList ? String(index) : name));
}
