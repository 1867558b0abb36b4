import { type FramingName, type HeaderName, headerName, isToken } from './header-names.ts';

/** The headers of a head, in the order in which they were sent, with repetitions. */
interface HeadFields {
  readonly names: readonly HeaderName[];
  /** The whole line of each header, with one space before the value and none after it. */
  readonly lines: readonly string[];
}

/** What a head says of its body and its connection. */
interface Framing {
  /** Value of `Content-Length`, in bytes; undefined when there is none. */
  readonly length: number | undefined;
  /** The body comes in chunks. */
  readonly isChunked: boolean;
  /** Value of `Connection`: several are joined with commas. Undefined when there is none. */
  readonly connection: string | undefined;
  /** Whether the backend means to keep the connection after this response. */
  readonly keepsAlive: boolean;
  /** How long the backend says that it keeps an unused connection. Milliseconds. */
  readonly keepAliveMs: number | undefined;
}

/** The head of a response that can be read in one way only. */
export interface ResponseHead extends HeadFields, Framing {
  /** As sent, with its line end. */
  readonly statusLine: string;
  readonly status: number;
  /** As sent; may be empty. */
  readonly reason: string;
}

/** Longest head; the same holds for a chunk size line with its extensions, and for a trailer section. Bytes. */
export const RESPONSE_HEAD_LIMIT_BYTES = 16 * 1024;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n/;
/** A line without the characters that no head may contain (RFC 9112 section 5.2): control characters, lone CR or LF. */
const LINE = /^[\t\x20-\x7e\x80-\xff]*$/;
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const KEEP_ALIVE = /(?:^|,)[ \t]*keep-alive[ \t]*(?:,|$)/i;
const BLANK = 0x20;
const TAB = 0x09;
const DIGITS = /^\d{1,15}$/;

/**
 * Reads a head, from its status line to the line end of its last header. Undefined for anything that RFC 9112 does not allow, or that
 * leaves the end of the body ambiguous: `Content-Length` twice, malformed or beside `Transfer-Encoding`, a transfer coding that is
 * not exactly one `chunked`, or any in HTTP/1.0.
 *
 * `before` may be any other head, ideally the previous one of the connection: most lines of a backend's heads repeat, and lines that
 * are the same byte for byte are shared with it instead of parsed again. It never changes the result.
 */
export function readResponseHead(text: string, before?: ResponseHead): ResponseHead | undefined {
  const line = before !== undefined && isAt(before.statusLine, text, 0) ? before : readStatusLine(text);
  if (line === undefined) return undefined;
  const { statusLine, status, reason } = line;
  const fields =
    before === undefined
      ? readFields(text, statusLine.length, { names: [], lines: [] })
      : readFieldsLike(before, text, statusLine.length);
  if (fields === undefined) return undefined;
  if (fields === before && line === before) return before;
  const framing =
    line === before && fields.isFramedAsBefore === true ? before : readFraming(fields, statusLine, status);
  if (framing === undefined) return undefined;
  return {
    statusLine,
    status,
    reason,
    names: fields.names,
    lines: fields.lines,
    length: framing.length,
    isChunked: framing.isChunked,
    connection: framing.connection,
    keepsAlive: framing.keepsAlive,
    keepAliveMs: framing.keepAliveMs,
  };
}

/** Not `startsWith`, which takes four times as long in optimized code. */
function isAt(line: string, text: string, at: number): boolean {
  return text.slice(at, at + line.length) === line;
}

function readStatusLine(text: string): Pick<ResponseHead, 'statusLine' | 'status' | 'reason'> | undefined {
  const line = STATUS_LINE.exec(text);
  if (line === null) return undefined;
  const [statusLine, , status, reason = ''] = line;
  return { statusLine, status: Number(status), reason };
}

/** Fields that were read. */
interface ReadFields extends HeadFields {
  /** The headers that decide how the response is read are the same as in the previous head. */
  readonly isFramedAsBefore?: boolean;
}

/** Shares with `before` the lines that are the same, and returns `before` itself when all are. Undefined when a header is malformed. */
function readFieldsLike(before: ResponseHead, text: string, start: number): ReadFields | undefined {
  let lines: string[] | undefined;
  let isFramedAsBefore = true;
  let at = start;
  for (let i = 0; i < before.names.length; i += 1) {
    const name = before.names[i];
    const line = before.lines[i] ?? '';
    if (isAt(line, text, at)) {
      at += line.length;
      continue;
    }
    const field = readField(text, at);
    if (field === undefined || field.name !== name) {
      // Also reached when this head has fewer headers than `before`.
      return readFields(text, at, fieldsUpTo(i, before.names, lines ?? before.lines));
    }
    lines ??= before.lines.slice();
    lines[i] = field.line;
    isFramedAsBefore &&= field.name.framing === undefined;
    at = field.end;
  }
  if (at < text.length) {
    return readFields(text, at, fieldsUpTo(before.names.length, before.names, lines ?? before.lines));
  }
  return lines === undefined ? before : { names: before.names, lines, isFramedAsBefore };
}

function fieldsUpTo(
  end: number,
  names: readonly HeaderName[],
  lines: readonly string[],
): { readonly names: HeaderName[]; readonly lines: string[] } {
  return { names: names.slice(0, end), lines: lines.slice(0, end) };
}

/** Adds the fields from a position on. Undefined when one is malformed. */
function readFields(
  text: string,
  start: number,
  { names, lines }: { readonly names: HeaderName[]; readonly lines: string[] },
): ReadFields | undefined {
  for (let at = start; at < text.length; ) {
    const field = readField(text, at);
    if (field === undefined) return undefined;
    names.push(field.name);
    lines.push(field.line);
    at = field.end;
  }
  return { names, lines };
}

interface Field {
  readonly name: HeaderName;
  readonly line: string;
  /** Where the next one begins. */
  readonly end: number;
}

/** The field at a position; undefined when it is malformed. */
function readField(text: string, at: number): Field | undefined {
  const colon = text.indexOf(':', at);
  const end = text.indexOf('\r\n', at);
  if (colon === -1 || colon > end || !LINE.test(text.slice(at, end))) return undefined;
  // A folded line begins with whitespace, which no name does.
  const name = headerName(text.slice(at, colon));
  if (name === null) return undefined;
  // Some programs do not treat a tab as whitespace, and would not recognise such a length or coding.
  if (name.framing !== undefined && hasTab(text, colon + 1, end)) return undefined;
  let first = colon + 1;
  let last = end;
  while (first < last && isBlank(text.charCodeAt(first))) first += 1;
  while (last > first && isBlank(text.charCodeAt(last - 1))) last -= 1;
  const isTidy = first === colon + 2 && last === end && text.charCodeAt(colon + 1) === BLANK;
  const line = isTidy ? text.slice(at, end + 2) : `${name.text}: ${text.slice(first, last)}\r\n`;
  return { name, line, end: end + 2 };
}

/** The headers that decide how a response is read, and how often each was sent. */
interface HopFields {
  lengths: number;
  length: string;
  codings: number;
  coding: string;
  connection: string | undefined;
  keepAlive: string;
}

/** Undefined when it is ambiguous. */
function readFraming({ names, lines }: HeadFields, statusLine: string, status: number): Framing | undefined {
  const hop: HopFields = {
    lengths: 0,
    length: '',
    codings: 0,
    coding: '',
    connection: undefined,
    keepAlive: '',
  };
  for (let i = 0; i < names.length; i += 1) {
    const name = names[i];
    if (name?.framing !== undefined) note(hop, name.framing, headerValue(name, lines[i] ?? ''));
  }
  const isOld = statusLine.startsWith('HTTP/1.0');
  if (!isFramingClear(hop, isOld)) return undefined;
  const { connection } = hop;
  const keepsAlive = connection === undefined ? !isOld : isKept(connection, isOld);
  // An interim response can't be the last one of its connection.
  if (status < 200 && status !== 101 && !keepsAlive) return undefined;
  return {
    length: hop.lengths === 0 ? undefined : Number(hop.length),
    isChunked: hop.codings > 0,
    connection,
    keepsAlive,
    keepAliveMs: hop.keepAlive === '' ? undefined : timeoutOf(hop.keepAlive),
  };
}

function note(hop: HopFields, name: FramingName, value: string): void {
  switch (name) {
    case 'content-length':
      hop.lengths += 1;
      hop.length = value;
      break;
    case 'transfer-encoding':
      hop.codings += 1;
      hop.coding = value;
      break;
    case 'connection':
      hop.connection = hop.connection === undefined ? value : `${hop.connection},${value}`;
      break;
    case 'keep-alive':
      hop.keepAlive = value;
      break;
  }
}

/** HTTP/1.1 keeps a connection by default, HTTP/1.0 only on demand (RFC 9112 section 9.3). */
function isKept(connection: string, isOld: boolean): boolean {
  if (connection === 'keep-alive') return true;
  return !CLOSE.test(connection) && (!isOld || KEEP_ALIVE.test(connection));
}

function isFramingClear({ lengths, length, codings, coding }: HopFields, isOld: boolean): boolean {
  if (lengths > 0) return lengths === 1 && codings === 0 && DIGITS.test(length);
  return codings === 0 || (codings === 1 && !isOld && coding.toLowerCase() === 'chunked');
}

/** The value of a header, from its whole line. */
export function headerValue(name: HeaderName, line: string): string {
  return line.slice(name.text.length + 2, -2);
}

/** Whether a line, without its CRLF, is a valid header. */
export function isHeaderLine(line: string): boolean {
  const colon = line.indexOf(':');
  return colon > 0 && isToken(line.slice(0, colon)) && LINE.test(line);
}

function hasTab(text: string, from: number, to: number): boolean {
  const at = text.indexOf('\t', from);
  return at !== -1 && at < to;
}

function isBlank(code: number): boolean {
  return code === BLANK || code === TAB;
}

function timeoutOf(keepAlive: string): number | undefined {
  const seconds = /(?:^|[,\s])timeout=(\d{1,9})/i.exec(keepAlive)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
