import type { BlockList } from 'node:net';
import { peerOf } from '../http/client-address.ts';
import { VIA_NAME } from '../http/request-head.ts';
import type { Exchange } from './exchange.ts';
import { FORWARDED_FIELDS, isProxyClaim, pushForwardedFields } from './forwarded.ts';
import { fieldsNamedBy, HOP_BY_HOP_FIELDS } from './hop-by-hop.ts';

/** What decides which fields the backend sees. */
export interface RequestFieldsOptions {
  /** Whether the backend gets the client's `Authorization` too. */
  readonly forwardAuthorization: boolean;
  readonly trustedProxies: BlockList;
}

/** Never forwarded as they came: they end here, or are ours to write. */
const REPLACED: ReadonlySet<string> = new Set<string>([
  ...HOP_BY_HOP_FIELDS,
  ...FORWARDED_FIELDS,
  'host',
  'expect',
  'x-api-key',
  'x-request-id',
]);

/** Ours to write while the request is traced, else the client's. */
const TRACE_FIELDS: ReadonlySet<string> = new Set(['traceparent', 'tracestate']);

/**
 * The fields of the request to the backend, a flat list of names and values, in one pass over the client's: names and values byte for
 * byte, order and repetition kept. Names with `_` are dropped, because many backends take `X_API_KEY` for `x-api-key`. `Host` is left
 * to the transport, which names the backend.
 */
export function requestFields(exchange: Exchange, options: RequestFieldsOptions): string[] {
  const { rawHeaders, headers, socket } = exchange.req;
  const { trace } = exchange;
  const peer = peerOf(socket, options.trustedProxies);
  const named = fieldsNamedBy(headers.connection);
  const fields: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.includes('_')) continue;
    const lower = name.toLowerCase();
    if (REPLACED.has(lower) || named?.has(lower) || (!peer.isTrusted && isProxyClaim(lower))) continue;
    if (lower === 'authorization' && !options.forwardAuthorization) continue;
    if (trace !== undefined && TRACE_FIELDS.has(lower)) continue;
    if (lower === 'content-length' && !exchange.head.hasBody) continue;
    fields.push(name, rawHeaders[i + 1] ?? '');
  }
  fields.push('Via', `1.1 ${VIA_NAME}`);
  pushForwardedFields(fields, exchange, peer);
  fields.push('X-Request-Id', exchange.requestId, 'x-api-key', exchange.secret);
  trace?.forward(fields);
  return fields;
}
