import fc from 'fast-check';
import { readCorpus } from './corpus.ts';

/** Longer ones only cost time: what decides is in the first bytes. */
const LONGEST_BYTES = 4000;

/** What framing is made of, whole and in parts, and what parsers disagree about. */
const TOKENS = [
  '\r\n',
  '\r',
  '\n',
  '\r\n\r\n',
  '\0',
  ' ',
  '\t',
  '\x0b',
  '\x0c',
  '\x85',
  '\xa0',
  '\x7f',
  ':',
  ';',
  ',',
  '"',
  '_',
  '-',
  '+',
  '0',
  '1',
  '5',
  'a',
  'x',
  '0x',
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Content-Length',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding',
  'chunked',
  'identity',
  ', chunked',
  '0\r\n\r\n',
  '5\r\nhello\r\n',
  ';a=b',
  'A: b\r\n',
  ' folded\r\n',
  'Host: b.example\r\n',
  'Connection: close\r\n',
  'Connection: keep-alive\r\n',
  'Expect: 100-continue\r\n',
  'Connection: Upgrade\r\nUpgrade: websocket\r\n',
  'Upgrade: h2c\r\n',
  'HTTP/1.0',
  'HTTP/1.1',
  'HTTP/2.0',
  'GET /inner HTTP/1.1\r\n',
  'POST ',
  'HEAD ',
  '/..',
  '%2e%2e',
  '\\',
  'http://b.example',
  '#',
  '*',
] as const;

type Edit = (bytes: string) => string;

/** A place in a text of any length. */
const place = fc
  .nat({ max: 9999 })
  .map((share) => (bytes: string) => Math.floor((share / 10_000) * (bytes.length + 1)));

const insertion: fc.Arbitrary<Edit> = fc.tuple(place, fc.constantFrom(...TOKENS)).map(
  ([at, token]) =>
    (bytes) =>
      bytes.slice(0, at(bytes)) + token + bytes.slice(at(bytes)),
);
const replacement: fc.Arbitrary<Edit> = fc.tuple(place, fc.constantFrom(...TOKENS)).map(
  ([at, token]) =>
    (bytes) =>
      bytes.slice(0, at(bytes)) + token + bytes.slice(at(bytes) + token.length),
);
const removal: fc.Arbitrary<Edit> = fc.tuple(place, fc.integer({ min: 1, max: 12 })).map(
  ([at, count]) =>
    (bytes) =>
      bytes.slice(0, at(bytes)) + bytes.slice(at(bytes) + count),
);
const repetition: fc.Arbitrary<Edit> = fc.tuple(place, fc.integer({ min: 1, max: 40 })).map(
  ([at, count]) =>
    (bytes) =>
      bytes.slice(0, at(bytes) + count) + bytes.slice(at(bytes)),
);

/** A case of the corpus with one to three places changed, or two of them cut in two and put together. More of those that are forwarded. */
export function mutants(): fc.Arbitrary<string> {
  const short = readCorpus().filter(({ bytes }) => bytes.length <= LONGEST_BYTES);
  const bytesOf = (cases: typeof short) => fc.constantFrom(...cases.map(({ bytes }) => bytes));
  const whole = fc.oneof(
    { weight: 4, arbitrary: bytesOf(short.filter(({ forwards }) => forwards > 0)) },
    { weight: 1, arbitrary: bytesOf(short) },
  );
  const spliced = fc
    .tuple(whole, place, whole, place)
    .map(([first, end, second, begin]) => first.slice(0, end(first)) + second.slice(begin(second)));
  const edit = fc.oneof(insertion, replacement, removal, repetition);
  const edits = fc.oneof(
    { weight: 3, arbitrary: fc.tuple(edit) },
    { weight: 1, arbitrary: fc.array(edit, { minLength: 2, maxLength: 3 }) },
  );
  return fc
    .tuple(fc.oneof({ weight: 4, arbitrary: whole }, { weight: 1, arbitrary: spliced }), edits)
    .map(([bytes, all]) => all.reduce((changed, change) => change(changed), bytes));
}
