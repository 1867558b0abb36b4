import { type IncomingMessage, METHODS } from 'node:http';
import { TollgateError } from '../../errors.ts';
import { neverForwarded } from '../../http/errors/method-not-allowed.ts';
import { bytesBeingParsed } from '../../http/node-internals.ts';
import type { ParsedRequest } from '../../http/parsed-request.ts';
import { viaNamesUs } from '../../http/via.ts';
import { MAX_HEADERS, REQUEST_HEAD_LIMIT_BYTES } from './head-limits.ts';
import { readTarget } from './request-target.ts';

/** The headers that decide how a request is read, and how often each was sent. */
interface HeadFields {
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
function readFields(raw: readonly string[]): HeadFields {
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

/**
 * Checks what the parser of Node lets through against RFC 9112: version, method, framing, Host, Expect, repeated credentials, loops and
 * the target. Returns a `TollgateError` for a head that another program could read differently. The connection must then be closed,
 * because the start of the next request is uncertain.
 */
export function parseRequest(req: IncomingMessage): ParsedRequest | TollgateError {
  const { httpVersionMinor } = req;
  const lineFault = requestLineFault(req);
  if (lineFault !== undefined) return lineFault;
  if (req.rawHeaders.length > 2 * MAX_HEADERS) return headTooLarge();
  const fields = readFields(req.rawHeaders);
  // The parser does not count all bytes of a head, so one that exceeds the limit can pass it.
  if (requestLineBytes(req) + fields.bytes + LINE_END_BYTES > REQUEST_HEAD_LIMIT_BYTES) return headTooLarge();
  const fault =
    framingFault(fields, httpVersionMinor) ??
    repetitionFault(fields) ??
    expectationFault(fields, httpVersionMinor);
  if (fault !== undefined) return fault;

  const target = readTarget(req.url ?? '', req.method);
  if (target instanceof TollgateError) return target;
  if (fields.host === undefined && httpVersionMinor === 1) return bad('A Host field is required.');
  const host = target.authority ?? fields.host;
  if (!mayBeHost(host) || (target.authority !== undefined && !mayBeHost(fields.host))) {
    return bad('The Host field is malformed.');
  }
  return {
    target: target.target,
    path: target.path,
    decodedPath: target.decodedPath,
    authority: target.authority,
    host,
    body: bodyFraming(fields),
    expectsContinue: fields.expectation !== undefined && httpVersionMinor === 1,
  };
}

function bodyFraming({ codings, length }: HeadFields): ParsedRequest['body'] {
  if (codings === 1) return 'chunked';
  return length === undefined ? 'none' : Number(length) || 'none';
}

function requestLineFault(req: IncomingMessage): TollgateError | undefined {
  const { httpVersionMajor, httpVersionMinor, method = '' } = req;
  // The parser accepts the versions 0.9, 1.0, 1.1 and 2.0, and the methods of RTSP.
  if (
    ((httpVersionMajor !== 1 || httpVersionMinor === 0) && isOtherProtocol(req)) ||
    !KNOWN_METHODS.has(method)
  ) {
    return malformedVersion();
  }
  if (httpVersionMajor !== 1) return versionNotSupported();
  return method === 'TRACE' || method === 'CONNECT' ? neverForwarded(method) : undefined;
}

/** The methods that the parser knows, TRACE and CONNECT too. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

/** Protocols besides HTTP whose request lines the parser of Node takes. */
const OTHERS = ['RTSP/', 'ICE/'] as const;

/**
 * Whether a request line that Node took for HTTP/1.x names another protocol: its parser also accepts RTSP and ICE, and does not say which
 * one it read. This searches a copy of the bytes being parsed, which is too expensive for every request, so it is not used for version
 * 1.1. A request line that arrived in an earlier chunk is not seen, and counts as HTTP.
 */
function isOtherProtocol({ method = '', url = '', socket }: IncomingMessage): boolean {
  const bytes = bytesBeingParsed(socket);
  if (bytes === undefined || !OTHERS.some((name) => bytes.includes(name, 0, 'latin1'))) return false;
  const line = new RegExp(
    `(?:^|[\\r\\n])${RegExp.escape(method)} +${RegExp.escape(url)} +(?:${OTHERS.join('|')})`,
  );
  return line.test(bytes.toString('latin1'));
}

function repetitionFault({ hosts, credentials, apiKeys, isLoop }: HeadFields): TollgateError | undefined {
  if (isLoop) {
    return new TollgateError('loop_detected', 'The request has passed through this gateway before.');
  }
  if (hosts > 1) return bad('There is more than one Host field.');
  if (credentials > 1) return bad('There is more than one Authorization field.');
  if (apiKeys > 1) return bad('There is more than one x-api-key field.');
  return undefined;
}

const DIGITS = /^\d{1,16}$/;

function framingFault(fields: HeadFields, minor: number): TollgateError | undefined {
  if (fields.length !== undefined && !DIGITS.test(fields.length)) return bad('Content-Length is malformed.');
  if (fields.codings === 0) return undefined;
  if (fields.length !== undefined) return bad('Content-Length and Transfer-Encoding exclude each other.');
  if (minor === 0) return bad('HTTP/1.0 has no Transfer-Encoding.');
  return is(fields.coding, 'chunked') ? undefined : codingFault(fields.coding);
}

/** A token, and parameters if there are any (RFC 9112 section 7). */
const CODING = /^[!#$%&'*+.^_`|~\w-]+[ \t]*(?:;|$)/;

/** Why a `Transfer-Encoding` other than `chunked` is rejected: without a final `chunked` nothing says where the body ends. */
function codingFault(value: string): TollgateError {
  const codings = value.split(',').map((each) => each.trim());
  const before = codings.slice(0, -1);
  const isFramed = is(codings.at(-1) ?? '', 'chunked');
  if (!isFramed || !before.every((each) => CODING.test(each) && !/^chunked\b/i.test(each))) {
    return bad('Transfer-Encoding must end in "chunked", which must not come twice.');
  }
  return new TollgateError('not_implemented', 'The only transfer coding understood is "chunked".');
}

function expectationFault(fields: HeadFields, minor: number): TollgateError | undefined {
  // RFC 9110 section 10.1.1: in an HTTP/1.0 request the expectation is ignored.
  if (fields.expectation === undefined || minor === 0 || is(fields.expectation, '100-continue'))
    return undefined;
  return new TollgateError('expectation_failed', 'The only expectation understood is "100-continue".');
}

/** `uri-host [":" port]` of RFC 9110 section 7.2, not empty; no `.` or `..`, which some take for directories. */
const AUTHORITY = /^(?!.*\.\.|\.(?::|$))(?:[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/;

/** Whether a value has the form of a Host field; there may be none. */
export function mayBeHost(value: string | undefined): boolean {
  return value === undefined || AUTHORITY.test(value);
}

function is(text: string, lowerCase: string): boolean {
  return text === lowerCase || text.toLowerCase() === lowerCase;
}

const LINE_END_BYTES = 2;
/** Bytes of a request line besides method and target: two spaces, the version, CR and LF. */
const REQUEST_LINE_BYTES = ' '.length + ' HTTP/1.1'.length + LINE_END_BYTES;

function requestLineBytes({ method = '', url = '' }: IncomingMessage): number {
  return method.length + url.length + REQUEST_LINE_BYTES;
}

/** For heads of more than `REQUEST_HEAD_LIMIT_BYTES` or `MAX_HEADERS`, for which the parser has one error. */
export function headTooLarge(cause?: Error): TollgateError {
  const sentence = `The head of the request is larger than ${REQUEST_HEAD_LIMIT_BYTES / 1024} KiB or has more than ${MAX_HEADERS} headers.`;
  return new TollgateError('head_too_large', sentence, cause);
}

/** For a well-formed version with another major version than 1. */
export function versionNotSupported(cause?: Error): TollgateError {
  const sentence = 'Only HTTP/1.0 and HTTP/1.1 are understood.';
  return new TollgateError('http_version_not_supported', sentence, cause);
}

/** For a request line that does not end in `HTTP/1.0` or `HTTP/1.1`, nor in another major version. */
export function malformedVersion(cause?: Error): TollgateError {
  const sentence = 'The request line must end in HTTP/1.0 or HTTP/1.1.';
  return new TollgateError('bad_request', sentence, cause);
}

function bad(sentence: string): TollgateError {
  return new TollgateError('bad_request', sentence);
}
