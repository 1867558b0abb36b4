import type { IncomingHttpHeaders } from 'node:http';
import type { BlockList } from 'node:net';
import { isToken } from '../../backend/header-names.ts';
import { type Peer, peerOf } from '../../http/client-address.ts';
import { withoutSessionCookies } from '../../http/credentials/session-cookie.ts';
import { flatText } from '../../http/flat-text.ts';
import { headerLine } from '../../http/node-internals.ts';
import { VIA } from '../../http/via.ts';
import type { RequestTrace } from '../../observability/tracing.ts';
import type { Exchange } from '../exchange.ts';
import { HOP_BY_HOP_HEADERS, headersNamedBy } from './response-headers.ts';

/** Headers that name the client and its protocol to the backend, always written by the gateway. Lower case. */
const FORWARDED_HEADERS = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto'] as const;

/** Whether a header (its name in lower case) claims what only a proxy can know: kept from a trusted proxy, dropped otherwise. */
function isProxyClaim(name: string): boolean {
  return name.startsWith('x-forwarded-') || name === 'x-real-ip';
}

/**
 * Whether a header (its name in lower case) claims what only the gateway says of a key. A gateway that asks /authorize sends such headers to
 * its backend, which may be this one as well.
 */
function isOwnClaim(name: string, customerIdHeader: string): boolean {
  return name.startsWith('tollgate-') && name !== customerIdHeader;
}

/** The lines of the last request of a peer: most requests on a connection have the same host. */
interface LastLines {
  readonly host: string;
  readonly lines: string;
}

const lastLines = new WeakMap<Peer, LastLines>();
/** Longest host whose lines are kept. */
const LONGEST_KEPT = 255;

/**
 * The lines of `X-Forwarded-For`, `-Host`, `-Proto` and `Forwarded` (RFC 7239) for this hop. If the peer is a
 * trusted proxy, its chain is continued and its host and protocol are kept. Otherwise all values are the gateway's.
 */
function forwardedLines({ req, head }: Exchange, peer: Peer): string {
  const { host } = head;
  if (peer.isTrusted) return linesFor(peer.address, host, req.headers);
  const last = lastLines.get(peer);
  if (last !== undefined && last.host === host) return last.lines;
  const lines = flatText(linesFor(peer.address, host, NOTHING));
  if (host !== undefined && host.length <= LONGEST_KEPT) lastLines.set(peer, { host, lines });
  return lines;
}

function linesFor(address: string, ownHost: string | undefined, before: IncomingHttpHeaders): string {
  const host = one(before['x-forwarded-host']) ?? ownHost;
  const proto = one(before['x-forwarded-proto']) ?? 'http';
  return (
    headerLine('X-Forwarded-For', continued(before['x-forwarded-for'], address)) +
    (host === undefined ? '' : headerLine('X-Forwarded-Host', host)) +
    headerLine('X-Forwarded-Proto', proto) +
    headerLine('Forwarded', continued(before.forwarded, forwardedElement(address, ownHost)))
  );
}

const NOTHING: IncomingHttpHeaders = Object.freeze({});

/** This hop in the form of RFC 7239: IPv6 in brackets, and quotes around a value that is not a token. */
function forwardedElement(peer: string, host: string | undefined): string {
  // Only an IPv6 address has colons.
  const node = peer.includes(':') ? `"[${peer}]"` : peer || 'unknown';
  if (host === undefined) return `for=${node};proto=http`;
  return `for=${node};host=${isToken(host) ? host : `"${host}"`};proto=http`;
}

function continued(before: string | string[] | undefined, own: string): string {
  const chain = Array.isArray(before) ? before.join(', ') : before;
  return chain ? `${chain}, ${own}` : own;
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** What decides which headers the backend gets. */
export interface RequestHeadersOptions {
  /** In lower case. */
  readonly customerIdHeader: string;
  /** Whether the backend gets the client's `Authorization` too. */
  readonly forwardAuthorization: boolean;
  /** Whether the cookies of the console are removed. */
  readonly dropsSessionCookies: boolean;
  readonly trustedProxies: BlockList;
}

/** Never forwarded as received: they end at this hop, or the gateway writes its own. */
const REPLACED: readonly string[] = [
  ...HOP_BY_HOP_HEADERS,
  ...FORWARDED_HEADERS,
  'host',
  'content-length',
  'expect',
  // CGI and what is modelled on it would make it HTTP_PROXY, the outgoing proxy of many programs (CVE-2016-5385 and others).
  'proxy',
  'x-api-key',
  'x-request-id',
];

/** Written by the gateway while the request is traced; otherwise the client's are forwarded. */
const TRACE_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

const VIA_LINE = flatText(headerLine('Via', VIA));

/**
 * The headers of the request to the backend, as lines, in one pass over the client's: names and values byte for
 * byte, order and repetition kept, but for those that a backend may take for others, see `isAmbiguous`. `requestHead` adds `Host` and the
 * framing of the body, and `traceHeaderLines` has those of a traced request.
 */
export function requestHeaderLines(exchange: Exchange, options: RequestHeadersOptions): string {
  const { rawHeaders, headers, socket } = exchange.req;
  const { trace } = exchange;
  const peer = peerOf(socket, options.trustedProxies);
  const named = headersNamedBy(headers.connection);
  const line = options.dropsSessionCookies ? lineWithoutSession : headerLine;
  let lines = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const lower = name.toLowerCase();
    if (!isPlain(lower) && isAmbiguous(lower, options.customerIdHeader)) continue;
    if (isReplaced(lower) || named?.has(lower) || (!peer.isTrusted && isProxyClaim(lower))) continue;
    if (isOwnClaim(lower, options.customerIdHeader)) continue;
    if (lower === 'authorization' && !options.forwardAuthorization) continue;
    if (trace !== undefined && TRACE_HEADERS.has(lower)) continue;
    lines += line(name, rawHeaders[i + 1] ?? '');
  }
  lines += VIA_LINE + forwardedLines(exchange, peer);
  return `${lines}X-Request-Id: ${exchange.requestId}\r\nx-api-key: ${exchange.secret}\r\n`;
}

/** Begins the request's client span. Returns the lines of its headers, which the backend gets beside those of `requestHeaderLines`. */
export function traceHeaderLines(trace: RequestTrace): string {
  const fields: string[] = [];
  trace.forward(fields);
  let lines = '';
  for (let i = 0; i < fields.length; i += 2) lines += headerLine(fields[i] ?? '', fields[i + 1] ?? '');
  return lines;
}

const LOWER_CASE_BIT = 0x20;
const C = 0x63;

/** The line of a header without the cookies of the console; empty if nothing is left. */
function lineWithoutSession(name: string, value: string): string {
  const isCookie = (name.charCodeAt(0) | LOWER_CASE_BIT) === C && name.toLowerCase() === 'cookie';
  if (!isCookie) return headerLine(name, value);
  const cookies = withoutSessionCookies(value);
  return cookies === '' && value !== '' ? '' : headerLine(name, cookies);
}

/** By length. For a look-up in a set, V8 enters a new string into its string table, which takes longer than a few comparisons. */
const REPLACED_BY_LENGTH = Map.groupBy(REPLACED, ({ length }) => length);

function isReplaced(lower: string): boolean {
  return REPLACED_BY_LENGTH.get(lower.length)?.includes(lower) === true;
}

const HYPHEN = 0x2d;

/** Whether a name (in lower case) has only letters, digits and hyphens. Nearly all do: a loop takes less time than an expression. */
function isPlain(lower: string): boolean {
  for (let i = 0; i < lower.length; i += 1) {
    const code = lower.charCodeAt(i);
    const isLetter = code >= 0x61 && code <= 0x7a;
    if (!isLetter && code !== HYPHEN && !(code >= 0x30 && code <= 0x39)) return false;
  }
  return true;
}

/**
 * Whether a backend may take a name that is not plain for another one: CGI and what was modelled on it keep `X-Api-Key` as `HTTP_X_API_KEY`,
 * so `X_Api_Key` is the same for them, and for some also `X.Api.Key` (PHP) or `X!Api!Key` (lighttpd). Names with `_` are never forwarded, and
 * of the others those are not that stand for what the gateway writes, what a proxy claims, or the customer by which the request was counted.
 */
function isAmbiguous(lower: string, customerIdHeader: string): boolean {
  if (lower.includes('_')) return true;
  const read = lower.replaceAll(/[^a-z0-9]/g, '-');
  return (
    isReplaced(read) || isProxyClaim(read) || isOwnClaim(read, customerIdHeader) || read === customerIdHeader
  );
}
