import type { IncomingHttpHeaders } from 'node:http';
import type { Peer } from '../../http/client-address.ts';
import type { Exchange } from '../exchange.ts';

/** Headers that name the client and its protocol to the backend, always written by the gateway. Lower case. */
export const FORWARDED_HEADERS = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
] as const;

/** Whether a header (its name in lower case) claims what only a proxy can know: kept from a trusted proxy, dropped otherwise. */
export function isProxyClaim(name: string): boolean {
  return name.startsWith('x-forwarded-') || name === 'x-real-ip';
}

/**
 * Adds `X-Forwarded-For`, `-Host`, `-Proto` and `Forwarded` (RFC 7239) for this hop to a flat list of headers. Behind a trusted proxy its
 * chain is continued and its host and protocol are kept; otherwise the values are the gateway's own alone.
 */
export function pushForwardedHeaders(fields: string[], { req, head }: Exchange, peer: Peer): void {
  const before = peer.isTrusted ? req.headers : NOTHING;
  const host = one(before['x-forwarded-host']) ?? head.host;
  const proto = one(before['x-forwarded-proto']) ?? 'http';
  fields.push('X-Forwarded-For', continued(before['x-forwarded-for'], peer.address));
  if (host !== undefined) fields.push('X-Forwarded-Host', host);
  fields.push('X-Forwarded-Proto', proto);
  fields.push('Forwarded', continued(before.forwarded, forwardedElement(peer.address, head.host)));
}

const NOTHING: IncomingHttpHeaders = Object.freeze({});

/** Our hop as RFC 7239 writes it: IPv6 in brackets, and quotes around what is no token. */
function forwardedElement(peer: string, host: string | undefined): string {
  // Only an IPv6 address has colons.
  const node = peer.includes(':') ? `"[${peer}]"` : peer || 'unknown';
  return host === undefined ? `for=${node};proto=http` : `for=${node};host=${quoted(host)};proto=http`;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function quoted(value: string): string {
  return TOKEN.test(value) ? value : `"${value}"`;
}

function continued(before: string | string[] | undefined, own: string): string {
  const chain = Array.isArray(before) ? before.join(', ') : before;
  return chain ? `${chain}, ${own}` : own;
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
