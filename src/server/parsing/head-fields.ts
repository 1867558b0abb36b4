import { viaNamesUs } from '../../http/via.ts';

/** The headers that decide how a request is read, and how often each was sent. */
export interface HeadFields {
  hosts: number;
  host: string | undefined;
  length: string | undefined;
  codings: number;
  /** The value of `Transfer-Encoding`, repeated ones combined. Only for `codings` above 0. */
  coding: string;
  expectation: string | undefined;
  credentials: number;
  apiKeys: number;
  isLoop: boolean;
  /** Size of all header lines. */
  bytes: number;
}

/** Bytes of a header line besides name and value: colon, space, CR and LF. */
const LINE_BYTES = 4;

/** Reads these headers in one pass over `raw`, Node's `rawHeaders`. */
export function readFields(raw: readonly string[]): HeadFields {
  const fields: HeadFields = {
    hosts: 0,
    host: undefined,
    length: undefined,
    codings: 0,
    coding: '',
    expectation: undefined,
    credentials: 0,
    apiKeys: 0,
    isLoop: false,
    bytes: 0,
  };
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    fields.bytes += name.length + value.length + LINE_BYTES;
    // The length alone rules out most header names.
    if (DECISIVE_LENGTHS[name.length] === true) readField(fields, name.toLowerCase(), value);
  }
  return fields;
}

function readField(fields: HeadFields, name: string, value: string): void {
  switch (name) {
    case 'host':
      fields.hosts += 1;
      fields.host = value;
      break;
    case 'content-length':
      fields.length = joined(fields.length, value);
      break;
    case 'transfer-encoding':
      fields.codings += 1;
      fields.coding = fields.codings === 1 ? value : `${fields.coding}, ${value}`;
      break;
    case 'expect':
      fields.expectation = joined(fields.expectation, value);
      break;
    case 'authorization':
      fields.credentials += 1;
      break;
    case 'x-api-key':
      fields.apiKeys += 1;
      break;
    case 'via':
      fields.isLoop ||= viaNamesUs(value);
      break;
  }
}

const DECISIVE_LENGTHS: readonly (true | undefined)[] = Array.from({ length: 18 }, (_, length) =>
  ['via', 'host', 'expect', 'x-api-key', 'authorization', 'content-length', 'transfer-encoding'].some(
    (name) => name.length === length,
  )
    ? true
    : undefined,
);

/** Combines a repeated header as in RFC 9110 section 5.3. `parseRequest` rejects the value for its comma. */
function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}
