import { type FramingName, type HeaderName, headerName, isToken } from './header-names.ts';

/** The fields of a head: order and repetition as sent. */
interface HeadFields {
  readonly names: HeaderName[];
  /** Of each name the whole line, with one blank before the value and none after it. */
  readonly lines: string[];
}

/** The head of a response, read in the only way in which it can be read. */
export interface ResponseHead extends HeadFields {
  /** As sent, with its line end. */
  readonly statusLine: string;
  readonly status: number;
  /** As sent; may be empty. */
  readonly reason: string;
  /** Value of `Content-Length`, in bytes; undefined when there is none. */
  readonly length: number | undefined;
  /** The body comes in chunks. */
  readonly isChunked: boolean;
  /** Undefined when there is none; several of them are joined with commas. */
  readonly connection: string | undefined;
  /** Whether the backend means to keep the connection after this response. */
  readonly keepsAlive: boolean;
  /** How long the backend says that it keeps an unused connection. Milliseconds. */
  readonly keepAliveMs: number | undefined;
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n/;
/** A line without what no head may contain (RFC 9112 section 5.2): control characters, a CR or an LF alone. */
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
 * `before` is any other head, best the one before on the same connection: most lines of a backend's heads are the same, and what is the
 * same byte for byte is not read again. It does not change what is read.
 */
export function readResponseHead(text: string, before?: ResponseHead): ResponseHead | undefined {
  const line = before !== undefined && text.startsWith(before.statusLine) ? before : readStatusLine(text);
  if (line === undefined) return undefined;
  const { statusLine, status, reason } = line;
  const hop: HopFields = {
    lengths: 0,
    length: '',
    codings: 0,
    coding: '',
    connection: undefined,
    keepAlive: '',
  };
  const fields: HeadFields = { names: [], lines: [] };
  const isOld = statusLine.startsWith('HTTP/1.0');
  if (!readFields(text, fields, hop, { start: statusLine.length, before })) return undefined;
  if (!isFramingClear(hop, isOld)) return undefined;
  const { connection } = hop;
  const keepsAlive = connection === undefined ? !isOld : isKept(connection, isOld);
  // An interim response can't be the last one of its connection.
  if (status < 200 && status !== 101 && !keepsAlive) return undefined;
  return {
    statusLine,
    status,
    reason,
    names: fields.names,
    lines: fields.lines,
    length: hop.lengths === 0 ? undefined : Number(hop.length),
    isChunked: hop.codings > 0,
    connection,
    keepsAlive,
    keepAliveMs: hop.keepAlive === '' ? undefined : timeoutOf(hop.keepAlive),
  };
}

function readStatusLine(text: string): Pick<ResponseHead, 'statusLine' | 'status' | 'reason'> | undefined {
  const line = STATUS_LINE.exec(text);
  if (line === null) return undefined;
  const [statusLine, , status, reason = ''] = line;
  return { statusLine, status: Number(status), reason };
}

/** The fields that say how a response is read, and how often each was there. */
interface HopFields {
  lengths: number;
  length: string;
  codings: number;
  coding: string;
  connection: string | undefined;
  keepAlive: string;
}

/** Adds the fields to `head`, and notes in `hop` those of the hop. False when one is malformed. */
function readFields(
  text: string,
  head: HeadFields,
  hop: HopFields,
  { start, before }: { readonly start: number; readonly before: ResponseHead | undefined },
): boolean {
  /** Which line of the head before may be the one that comes next. */
  let next = 0;
  for (let at = start; at < text.length; ) {
    const name = before?.names[next];
    const line = before?.lines[next];
    if (name !== undefined && line !== undefined && text.startsWith(line, at)) {
      if (name.framing !== undefined) note(hop, name.framing, headerValue(name, line));
      head.names.push(name);
      head.lines.push(line);
      next += 1;
      at += line.length;
    } else {
      at = readField(text, at, head, hop);
      if (at === -1) return false;
      if (head.names.at(-1) === name) next += 1;
    }
  }
  return true;
}

/** The same for the field at a position. Returns where the next begins; -1 when it is malformed. */
function readField(text: string, at: number, { names, lines }: HeadFields, hop: HopFields): number {
  const colon = text.indexOf(':', at);
  const end = text.indexOf('\r\n', at);
  if (colon === -1 || colon > end || !LINE.test(text.slice(at, end))) return -1;
  // No name begins with a blank, as a folded line does.
  const name = headerName(text.slice(at, colon));
  if (name === null) return -1;
  let first = colon + 1;
  let last = end;
  while (first < last && isBlank(text.charCodeAt(first))) first += 1;
  while (last > first && isBlank(text.charCodeAt(last - 1))) last -= 1;
  if (name.framing !== undefined) {
    // Some programs do not take a tab for a blank, and would not know such a length or coding.
    if (hasTab(text, colon + 1, end)) return -1;
    note(hop, name.framing, text.slice(first, last));
  }
  const isTidy = first === colon + 2 && last === end && text.charCodeAt(colon + 1) === BLANK;
  names.push(name);
  lines.push(isTidy ? text.slice(at, end + 2) : `${name.text}: ${text.slice(first, last)}\r\n`);
  return end + 2;
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

/** The value of a field, from its whole line. */
export function headerValue(name: HeaderName, line: string): string {
  return line.slice(name.text.length + 2, -2);
}

/** Whether a line, without its end, is a field that may stand in a head. */
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
