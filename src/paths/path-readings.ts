/** Whether a path in another case is another path. */
export const PATH_CASES = ['insensitive', 'sensitive'] as const;
export type PathCase = (typeof PATH_CASES)[number];

/** How a backend may read a path that is not plain. */
interface Reading {
  /** What happens to the `;parameters` of segments. */
  readonly parameters: 'removed' | 'removed before decoding' | 'kept';
  /** Whether `%2F` separates segments, or is a character of one. */
  readonly encodedSlash: 'separates' | 'stays';
}

const CANONICAL: Reading = { parameters: 'removed', encodedSlash: 'separates' };
const KEPT: Reading = { parameters: 'kept', encodedSlash: 'separates' };
const NONE: readonly string[] = [];

/**
 * The canonical form of a path (no query, well-formed percent-encoding): percent-decoded once, with `%2F` as a slash; runs of slashes as
 * one; without `;parameters` of segments and a slash at the end; in lower case unless case matters. What can't stand in a path, and a
 * decoded `%`, `?` or `#`, is percent-encoded in capitals.
 */
export function canonicalPath(path: string, pathCase: PathCase): string {
  return readPath(path, CANONICAL, pathCase);
}

/**
 * The other paths for which a backend may take a path (no query), its canonical form first; none for a plain path. Backends differ in
 * what they do first with `;`, `%2F` and `%3B`, and some decode twice: only a path with these has more than the canonical form.
 */
export function otherReadings(path: string, pathCase: PathCase): readonly string[] {
  if (isPlain(path, pathCase)) return NONE;
  const readings = new Set([canonicalPath(path, pathCase)]);
  const encodedSlashes: Reading['encodedSlash'][] = /%2f/i.test(path)
    ? ['separates', 'stays']
    : ['separates'];
  for (const encodedSlash of encodedSlashes) {
    for (const parameters of parameterReadings(path))
      readings.add(readPath(path, { parameters, encodedSlash }, pathCase));
  }
  if (DECODED_TO_SYNTAX.test(path)) readings.add(readRewritten(path, pathCase));
  readings.delete(path);
  return [...readings];
}

/** Whether a path is its own canonical form at a glance. Nearly every path is: this is a loop because it takes half the time of a regular expression. */
function isPlain(path: string, pathCase: PathCase): boolean {
  const lastCapital = pathCase === 'insensitive' ? LAST_CAPITAL : 0;
  let before = 0;
  for (let at = 0; at < path.length; at += 1) {
    const code = path.charCodeAt(at);
    if (code === PERCENT || code === SEMICOLON || (code === SLASH && before === SLASH)) return false;
    if (code >= FIRST_CAPITAL && code <= lastCapital) return false;
    before = code;
  }
  return before !== SLASH || path.length === 1;
}

const FIRST_CAPITAL = 0x41;
const LAST_CAPITAL = 0x5a;

/** A literal segment of a canonical pattern as readings of paths have it. */
export function readSegment(segment: string, pathCase: PathCase): string {
  return readPath(`/${segment}`, { parameters: 'kept', encodedSlash: 'stays' }, pathCase).slice(1);
}

const SLASH = 0x2f;
const PERCENT = 0x25;
const SEMICOLON = 0x3b;
/** `%25`, `%3F` and `%23`: decoded, they mean something to a program that reads the path once more. */
const DECODED_TO_SYNTAX = /%(?:25|3[Ff]|23)/;
const UTF8 = new TextDecoder();
const QUERY_OR_FRAGMENT = /%(?:3F|23).*$/;
/** A segment that has nothing but parameters: it is gone without them. */
const ONLY_PARAMETERS = /(?:\/|%2f)(?:;|%3b)/i;
/** What a backend does not see that removes parameters before it decodes. */
const ENCODED_SYNTAX = /%(?:2f|3b)/i;

function parameterReadings(path: string): readonly Reading['parameters'][] {
  const readings: Reading['parameters'][] = ['removed'];
  if (path.includes(';') && ENCODED_SYNTAX.test(path)) readings.push('removed before decoding');
  if (ONLY_PARAMETERS.test(path)) readings.push('kept');
  return readings;
}

/**
 * The path as a server reads it that puts the decoded path into another target (rewrite rules, a query parameter): decoded again, `?` and
 * `#` end it, `\` is a slash. Only such a path can still have dot segments, because the gateway rejects them in those that it gets.
 */
function readRewritten(path: string, pathCase: PathCase): string {
  const decoded = readPath(path, KEPT, 'sensitive').replace(QUERY_OR_FRAGMENT, '').replaceAll('%25', '%');
  const again = readPath(decoded, KEPT, 'sensitive').replace(QUERY_OR_FRAGMENT, '').replaceAll('\\', '/');
  return withoutDotSegments(readPath(again, CANONICAL, pathCase));
}

/** In one pass over the characters, because a client can make all of a long path from escapes. */
function readPath(path: string, reading: Reading, pathCase: PathCase): string {
  const text = new PathText(path.length, pathCase);
  let isInParameters = false;
  for (let at = 0; at < path.length; at += 1) {
    const sent = path.charCodeAt(at);
    const byte = sent === PERCENT ? byteAt(path, at + 1) : undefined;
    const isEscaped = byte !== undefined;
    const code = byte ?? sent;
    if (isEscaped) at += 2;
    if (code === SLASH && separates(reading, isEscaped, isInParameters)) {
      isInParameters = false;
      text.addSlash();
    } else if (isInParameters || (code === SEMICOLON && beginsParameters(reading, isEscaped))) {
      isInParameters = true;
    } else if (isEscaped && staysEncoded(code)) {
      text.addEscape(code);
    } else {
      text.add(code);
    }
  }
  return text.end();
}

/** A path in the making. */
class PathText {
  readonly #bytes: Uint8Array;
  readonly #pathCase: PathCase;
  #length = 0;
  #isAscii = true;

  /** `capacity` in characters. */
  constructor(capacity: number, pathCase: PathCase) {
    this.#bytes = new Uint8Array(capacity);
    this.#pathCase = pathCase;
  }

  add(code: number): void {
    const isCapital = code >= FIRST_CAPITAL && code <= LAST_CAPITAL;
    this.#bytes[this.#length] = isCapital && this.#pathCase === 'insensitive' ? code | 0x20 : code;
    this.#length += 1;
  }

  /** Adds none behind another one. */
  addSlash(): void {
    if (this.#length === 0 || this.#bytes[this.#length - 1] !== SLASH) this.add(SLASH);
  }

  addEscape(byte: number): void {
    this.#bytes[this.#length] = PERCENT;
    this.#bytes[this.#length + 1] = HEX_DIGITS.charCodeAt(byte >> 4);
    this.#bytes[this.#length + 2] = HEX_DIGITS.charCodeAt(byte & 0xf);
    this.#length += 3;
    if (byte >= 0x80) this.#isAscii = false;
  }

  /** The path without a slash at its end. */
  end(): string {
    if (this.#length > 1 && this.#bytes[this.#length - 1] === SLASH) this.#length -= 1;
    const path = UTF8.decode(this.#bytes.subarray(0, this.#length));
    return this.#isAscii || this.#pathCase === 'sensitive' ? path : withFoldedLetters(path);
  }
}

/** Whether a slash separates segments. In parameters that were removed before decoding, an encoded one was never seen. */
function separates(
  { parameters, encodedSlash }: Reading,
  isEscaped: boolean,
  isInParameters: boolean,
): boolean {
  if (!isEscaped) return true;
  return encodedSlash === 'separates' && !(isInParameters && parameters === 'removed before decoding');
}

function beginsParameters({ parameters }: Reading, isEscaped: boolean): boolean {
  return parameters === 'removed' || (parameters === 'removed before decoding' && !isEscaped);
}

/** Whether a decoded byte can't stand in a path, or would mean something else there. */
function staysEncoded(byte: number): boolean {
  return byte <= 0x20 || byte >= 0x7f || byte === PERCENT || byte === SLASH || byte === 0x3f || byte === 0x23;
}

const HEX_DIGITS = '0123456789ABCDEF';

/** The byte that two hexadecimal digits at `at` stand for; undefined if they are none. */
function byteAt(text: string, at: number): number | undefined {
  const high = hexDigit(text.charCodeAt(at));
  const low = hexDigit(text.charCodeAt(at + 1));
  return high < 0 || low < 0 ? undefined : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function withoutDotSegments(path: string): string {
  if (!path.includes('/.')) return path;
  const segments: string[] = [];
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..') segments.pop();
    else if (segment !== '.') segments.push(segment);
  }
  return `/${segments.join('/')}`;
}

/** Folds the case of letters beyond ASCII, as backends do that ignore case. Bytes that are not UTF-8 are unchanged. */
function withFoldedLetters(path: string): string {
  return path.replaceAll(/(?:%[89A-F][0-9A-F])+/g, (escapes) => {
    try {
      return encodeURIComponent(Array.from(decodeURIComponent(escapes), foldLetter).join(''));
    } catch {
      return escapes;
    }
  });
}

/** Also turns the letters into ASCII that ignoring case makes equal to one of ASCII, such as the long s. */
function foldLetter(letter: string): string {
  const upper = letter.toUpperCase();
  const lower = (upper.length === letter.length ? upper : letter).toLowerCase();
  return lower.startsWith('i') ? 'i' : lower;
}
