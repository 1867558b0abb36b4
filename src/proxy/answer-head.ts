import { hasOption } from '../http/connection-options.ts';

/** The head of an answer, read in the only way in which it can be read. */
export interface AnswerHead {
  readonly status: number;
  /** As sent; may be empty. */
  readonly reason: string;
  /** Names and values in turn: case, order and repetition as sent, blanks around values left out. */
  readonly fields: string[];
  /** Value of `Content-Length`, in bytes; undefined when there is none. */
  readonly length: number | undefined;
  /** The body comes in chunks. */
  readonly isChunked: boolean;
  /** Undefined when there is none; several of them are joined with commas. */
  readonly connection: string | undefined;
  /** Whether the backend means to keep the connection after this answer. */
  readonly keepsAlive: boolean;
  /** How long the backend says that it keeps an unused connection. Milliseconds. */
  readonly keepAliveMs: number | undefined;
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?\r\n/;
const DIGITS = /^\d{1,15}$/;

/**
 * Reads a head, from its status line to the line end of its last field. Undefined for anything that RFC 9112 does not allow, or by
 * which nobody could tell where the body ends: `Content-Length` twice, malformed or beside `Transfer-Encoding`, a transfer coding that is
 * not exactly one `chunked`, or any in HTTP/1.0.
 */
export function readAnswerHead(text: string): AnswerHead | undefined {
  const line = STATUS_LINE.exec(text);
  if (line === null) return undefined;
  const [{ length: start }, minor, status, reason = ''] = line;
  const hop = noHopFields();
  const fields = readFields(text, start, hop);
  const isOld = minor === '0';
  if (fields === undefined || !isFramingClear(hop, isOld)) return undefined;
  const { connection } = hop;
  const keepsAlive = !hasOption(connection, 'close') && (!isOld || hasOption(connection, 'keep-alive'));
  // An interim answer behind which nothing follows is none.
  if (status?.startsWith('1') && status !== '101' && !keepsAlive) return undefined;
  return {
    status: Number(status),
    reason,
    fields,
    length: hop.lengths === 0 ? undefined : Number(hop.length),
    isChunked: hop.codings > 0,
    connection,
    keepsAlive,
    keepAliveMs: hop.keepAlive === '' ? undefined : timeoutOf(hop.keepAlive),
  };
}

/** The fields that say how an answer is read, and how often each was there. */
interface HopFields {
  lengths: number;
  length: string;
  codings: number;
  coding: string;
  connection: string | undefined;
  keepAlive: string;
}

function noHopFields(): HopFields {
  return { lengths: 0, length: '', codings: 0, coding: '', connection: undefined, keepAlive: '' };
}

/**
 * The fields as a flat list, those of the hop noted in `hop` as well. Undefined when there is what no head may contain (RFC 9112 sections 2.2
 * and 5.2): a name that is no token, a control character, a CR or an LF alone, a folded line. By hand, because every answer comes through
 * here, and regular expressions over the whole of its head cost half as much again.
 */
function readFields(text: string, start: number, hop: HopFields): string[] | undefined {
  const fields: string[] = [];
  for (let at = start; at < text.length; ) {
    let colon = at;
    while (KINDS[text.charCodeAt(colon)] === TOKEN) colon += 1;
    const end = endOfLine(text, colon);
    if (colon === at || end === -1 || text.charCodeAt(colon) !== COLON) return undefined;
    const name = text.slice(at, colon);
    const value = withoutBlanks(text, colon + 1, end);
    const role = roleOf(name);
    if (role !== undefined) {
      // Some programs do not take a tab for a blank, and would not know such a length or coding.
      if (hasTab(text, colon + 1, end)) return undefined;
      note(hop, role, value);
    }
    fields.push(name, value);
    at = end + 2;
  }
  return fields;
}

/** Where the line ends in which `from` is; -1 when a character comes before that may not stand in it. */
function endOfLine(text: string, from: number): number {
  let end = from;
  while ((KINDS[text.charCodeAt(end)] ?? CONTROL) !== CONTROL) end += 1;
  return text.charCodeAt(end) === CR && text.charCodeAt(end + 1) === LF ? end : -1;
}

/** The part of the text without the blanks and tabs at its ends. */
function withoutBlanks(text: string, from: number, to: number): string {
  let first = from;
  let last = to;
  while (first < last && isBlank(text.charCodeAt(first))) first += 1;
  while (last > first && isBlank(text.charCodeAt(last - 1))) last -= 1;
  return text.slice(first, last);
}

function note(hop: HopFields, role: Role, value: string): void {
  switch (role) {
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

function isFramingClear({ lengths, length, codings, coding }: HopFields, isOld: boolean): boolean {
  if (lengths > 0) return lengths === 1 && codings === 0 && DIGITS.test(length);
  return codings === 0 || (codings === 1 && !isOld && coding.toLowerCase() === 'chunked');
}

/** Whether a line, without its end, is a field that may stand in a head. */
export function isFieldLine(line: string): boolean {
  return readFields(`${line}\r\n`, 0, noHopFields())?.length === 2;
}

type Role = 'content-length' | 'transfer-encoding' | 'connection' | 'keep-alive';

/** Undefined for a name that says nothing about the hop. */
function roleOf(name: string): Role | undefined {
  // Most names are told by their length alone not to be one of these.
  if (name.length !== 10 && name.length !== 14 && name.length !== 17) return undefined;
  const lowerCase = name.toLowerCase();
  switch (lowerCase) {
    case 'content-length':
    case 'transfer-encoding':
    case 'connection':
    case 'keep-alive':
      return lowerCase;
  }
  return undefined;
}

const COLON = 0x3a;
const CR = 0x0d;
const LF = 0x0a;

/** Not allowed anywhere; allowed in a value; allowed in a name as well (RFC 9110 section 5.6.2). */
const CONTROL = 0;
const TEXT = 1;
const TOKEN = 2;
/** Which of these each character of latin1 is. */
const KINDS = Uint8Array.from({ length: 256 }, (_, code) => {
  if (/[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(String.fromCharCode(code))) return TOKEN;
  return code === 0x09 || (code >= 0x20 && code !== 0x7f) ? TEXT : CONTROL;
});

function hasTab(text: string, from: number, to: number): boolean {
  const at = text.indexOf('\t', from);
  return at !== -1 && at < to;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function timeoutOf(keepAlive: string): number | undefined {
  const seconds = /(?:^|[,\s])timeout=(\d{1,9})/i.exec(keepAlive)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
