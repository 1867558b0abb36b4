/** A request as a reader understands it that takes RFC 9112 at its word. Texts hold one byte a character. */
export interface ReadRequest {
  readonly method: string;
  /** Origin form: of an absolute-form target what stands behind its authority. */
  readonly target: string;
  readonly framing: 'none' | 'length' | 'chunked';
  readonly body: string;
  /** Names in lower case, and values. */
  readonly fields: readonly (readonly [string, string])[];
}

/** What a stream of bytes holds. */
export interface Reading {
  readonly requests: readonly ReadRequest[];
  /** What stands behind the last complete request: nothing, the beginning of another one, or what can't be one. */
  readonly rest: 'nothing' | 'incomplete' | 'malformed';
  /** Where the rest begins. */
  readonly end: number;
}

/**
 * Reads requests up to the first fault. The only freedom it takes are line ends before a request line and more than one blank within it,
 * which sections 2.2 and 3 of RFC 9112 allow. Shares nothing with the gateway's parser.
 */
export function readStrictly(text: string): Reading {
  const requests: ReadRequest[] = [];
  let at = 0;
  for (;;) {
    while (text[at] === '\r' || text[at] === '\n') at += 1;
    if (at >= text.length) return { requests, rest: 'nothing', end: at };
    const read = readRequest(text, at);
    if (typeof read === 'string') return { requests, rest: read, end: at };
    requests.push(read.request);
    at = read.end;
  }
}

type Fault = 'incomplete' | 'malformed';

const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~\w]+) +([!-~]+) +HTTP\/1\.([01])$/;
const FIELD_LINE = /^([!#$%&'*+\-.^_`|~\w]+):[\t ]*([\t -~\x80-\xff]*?)[\t ]*$/;
const AUTHORITY = /^https?:\/\/[^/?#]*/i;

function readRequest(text: string, from: number): { request: ReadRequest; end: number } | Fault {
  const headEnd = text.indexOf('\r\n\r\n', from);
  if (headEnd === -1) return 'incomplete';
  const [first = '', ...lines] = text.slice(from, headEnd).split('\r\n');
  const line = REQUEST_LINE.exec(first);
  const fields = readFields(lines);
  if (line === null || fields === undefined) return 'malformed';
  const [, method = '', target = '', minor] = line;
  const framing = framingOf(fields, minor === '0');
  if (framing === undefined) return 'malformed';
  const body = readBody(text, headEnd + 4, framing);
  if (typeof body === 'string') return body;
  const kind = typeof framing === 'number' ? 'length' : framing;
  return {
    request: { method, target: originForm(target), framing: kind, body: body.content, fields },
    end: body.end,
  };
}

function readFields(lines: readonly string[]): (readonly [string, string])[] | undefined {
  const fields: (readonly [string, string])[] = [];
  for (const line of lines) {
    const field = FIELD_LINE.exec(line);
    if (field === null) return undefined;
    fields.push([field[1]?.toLowerCase() ?? '', field[2] ?? '']);
  }
  return fields;
}

/** The length in bytes, or how it is coded; undefined when it can be understood in more than one way (RFC 9112 section 6.3). */
function framingOf(
  fields: readonly (readonly [string, string])[],
  isOld: boolean,
): number | 'chunked' | 'none' | undefined {
  const lengths = fields.filter(([name]) => name === 'content-length');
  const codings = fields.filter(([name]) => name === 'transfer-encoding');
  if (lengths.length + codings.length === 0) return 'none';
  if (lengths.length + codings.length > 1) return undefined;
  const value = (lengths[0] ?? codings[0])?.[1] ?? '';
  if (codings.length === 1) return !isOld && value.toLowerCase() === 'chunked' ? 'chunked' : undefined;
  return /^\d{1,16}$/.test(value) ? Number(value) : undefined;
}

type Body = { readonly content: string; readonly end: number };

function readBody(text: string, from: number, framing: number | 'chunked' | 'none'): Body | Fault {
  if (framing === 'chunked') return readChunks(text, from);
  const end = from + (framing === 'none' ? 0 : framing);
  return end > text.length ? 'incomplete' : { content: text.slice(from, end), end };
}

const SIZE_LINE = /^([0-9A-Fa-f]{1,13})(?:;[\t -~\x80-\xff]*)?$/;

function readChunks(text: string, from: number): Body | Fault {
  let content = '';
  let at = from;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd === -1) return 'incomplete';
    const size = SIZE_LINE.exec(text.slice(at, lineEnd))?.[1];
    if (size === undefined) return 'malformed';
    at = lineEnd + 2;
    const length = Number.parseInt(size, 16);
    if (length === 0) return readTrailers(text, at, content);
    if (at + length + 2 > text.length) return 'incomplete';
    content += text.slice(at, at + length);
    at += length;
    if (!text.startsWith('\r\n', at)) return 'malformed';
    at += 2;
  }
}

function readTrailers(text: string, from: number, content: string): Body | Fault {
  if (text.startsWith('\r\n', from)) return { content, end: from + 2 };
  const end = text.indexOf('\r\n\r\n', from);
  if (end === -1) return 'incomplete';
  const isWellFormed = readFields(text.slice(from, end).split('\r\n')) !== undefined;
  return isWellFormed ? { content, end: end + 4 } : 'malformed';
}

function originForm(target: string): string {
  const rest = target.replace(AUTHORITY, '');
  return rest.startsWith('/') || rest === target ? rest : `/${rest}`;
}
