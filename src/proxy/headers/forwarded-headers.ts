import type { IncomingHttpHeaders } from 'node:http';
import type { Peer } from '../../http/client-address.ts';
import { flatText } from '../../http/flat-text.ts';
import { headerLine } from '../../http/raw-head-response.ts';
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
export function forwardedLines({ req, head }: Exchange, peer: Peer): string {
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
