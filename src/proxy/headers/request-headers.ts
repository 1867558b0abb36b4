import type { BlockList } from 'node:net';
import { peerOf } from '../../http/client-address.ts';
import { VIA_NAME } from '../../http/parsed-request.ts';
import type { Exchange } from '../exchange.ts';
import { FORWARDED_HEADERS, isProxyClaim, pushForwardedHeaders } from './forwarded-headers.ts';
import { HOP_BY_HOP_HEADERS, headersNamedBy } from './hop-by-hop.ts';

/** What decides which headers the backend gets. */
export interface RequestHeadersOptions {
  /** Whether the backend gets the client's `Authorization` too. */
  readonly forwardAuthorization: boolean;
  readonly trustedProxies: BlockList;
}

/** Never forwarded as received: they end at this hop, or the gateway writes its own. */
const REPLACED: ReadonlySet<string> = new Set<string>([
  ...HOP_BY_HOP_HEADERS,
  ...FORWARDED_HEADERS,
  'host',
  'content-length',
  'expect',
  'x-api-key',
  'x-request-id',
]);

/** The gateway's own while the request is traced, else the client's. */
const TRACE_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

/**
 * The headers of the request to the backend, a flat list of names and values, in one pass over the client's: names and values byte for
 * byte, order and repetition kept. Names with `_` are dropped, because many backends take `X_API_KEY` for `x-api-key`. `Host` and
 * the length of the body are left to the transport.
 */
export function requestHeaders(exchange: Exchange, options: RequestHeadersOptions): string[] {
  const { rawHeaders, headers, socket } = exchange.req;
  const { trace } = exchange;
  const peer = peerOf(socket, options.trustedProxies);
  const named = headersNamedBy(headers.connection);
  const result: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.includes('_')) continue;
    const lower = name.toLowerCase();
    if (REPLACED.has(lower) || named?.has(lower) || (!peer.isTrusted && isProxyClaim(lower))) continue;
    if (lower === 'authorization' && !options.forwardAuthorization) continue;
    if (trace !== undefined && TRACE_HEADERS.has(lower)) continue;
    result.push(name, rawHeaders[i + 1] ?? '');
  }
  result.push('Via', `1.1 ${VIA_NAME}`);
  pushForwardedHeaders(result, exchange, peer);
  result.push('X-Request-Id', exchange.requestId, 'x-api-key', exchange.secret);
  trace?.forward(result);
  return result;
}
