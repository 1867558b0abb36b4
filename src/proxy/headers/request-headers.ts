import type { BlockList } from 'node:net';
import { peerOf } from '../../http/client-address.ts';
import { flatText } from '../../http/flat-text.ts';
import { headerLine } from '../../http/raw-head-response.ts';
import { VIA } from '../../http/via.ts';
import type { RequestTrace } from '../../observability/tracing.ts';
import type { Exchange } from '../exchange.ts';
import { FORWARDED_HEADERS, forwardedLines, isProxyClaim } from './forwarded-headers.ts';
import { HOP_BY_HOP_HEADERS, headersNamedBy } from './hop-by-hop.ts';

/** What decides which headers the backend gets. */
export interface RequestHeadersOptions {
  /** Whether the backend gets the client's `Authorization` too. */
  readonly forwardAuthorization: boolean;
  readonly trustedProxies: BlockList;
}

/** Never forwarded as received: they end at this hop, or the gateway writes its own. */
const REPLACED: readonly string[] = [
  ...HOP_BY_HOP_HEADERS,
  ...FORWARDED_HEADERS,
  'host',
  'content-length',
  'expect',
  'x-api-key',
  'x-request-id',
];

/** Written by the gateway while the request is traced; otherwise the client's are forwarded. */
const TRACE_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

const VIA_LINE = flatText(headerLine('Via', VIA));

/**
 * The headers of the request to the backend, as lines, in one pass over the client's: names and values byte for
 * byte, order and repetition kept. Names with `_` are dropped, because many backends take `X_API_KEY` for `x-api-key`. `requestHead` adds
 * `Host` and the framing of the body.
 */
export function requestHeaderLines(exchange: Exchange, options: RequestHeadersOptions): string {
  const { rawHeaders, headers, socket } = exchange.req;
  const { trace } = exchange;
  const peer = peerOf(socket, options.trustedProxies);
  const named = headersNamedBy(headers.connection);
  let lines = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.includes('_')) continue;
    const lower = name.toLowerCase();
    if (isReplaced(lower) || named?.has(lower) || (!peer.isTrusted && isProxyClaim(lower))) continue;
    if (lower === 'authorization' && !options.forwardAuthorization) continue;
    if (trace !== undefined && TRACE_HEADERS.has(lower)) continue;
    lines += headerLine(name, rawHeaders[i + 1] ?? '');
  }
  lines += VIA_LINE + forwardedLines(exchange, peer);
  lines += `X-Request-Id: ${exchange.requestId}\r\nx-api-key: ${exchange.secret}\r\n`;
  return trace === undefined ? lines : lines + traceLines(trace);
}

/** By length. For a look-up in a set, V8 enters a new string into its string table, which takes longer than a few comparisons. */
const REPLACED_BY_LENGTH = Map.groupBy(REPLACED, ({ length }) => length);

function isReplaced(lower: string): boolean {
  return REPLACED_BY_LENGTH.get(lower.length)?.includes(lower) === true;
}

function traceLines(trace: RequestTrace): string {
  const fields: string[] = [];
  trace.forward(fields);
  let lines = '';
  for (let i = 0; i < fields.length; i += 2) lines += headerLine(fields[i] ?? '', fields[i + 1] ?? '');
  return lines;
}
