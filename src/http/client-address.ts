import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP, type Socket } from 'node:net';

/**
 * The address that a request came from, as far as it can be trusted: the peer's, or, when the peer is a trusted proxy, the right-most
 * entry of `X-Forwarded-For` that is not a trusted proxy. Entries to its left are only claims of the client. If an entry is not an
 * address, the result is the proxy that added it.
 */
export function clientAddress(req: IncomingMessage, trustedProxies: BlockList): string {
  const peer = plainAddress(req.socket.remoteAddress ?? '');
  const forwardedFor = req.headers['x-forwarded-for'];
  if (forwardedFor === undefined || !isTrusted(peer, trustedProxies)) return peer;
  const chain = Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor;
  let address = peer;
  for (const entry of chain.split(',').reverse()) {
    const hop = writtenAddress(entry);
    if (hop === '') return address;
    address = hop;
    if (!isTrusted(hop, trustedProxies)) return address;
  }
  return address;
}

/** Whether a plain address is that of a trusted proxy. */
function isTrusted(address: string, trustedProxies: BlockList): boolean {
  const family = isIP(address);
  return family !== 0 && trustedProxies.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/** The remote end of a connection. */
export interface Peer {
  /** Empty when the connection is gone already. */
  readonly address: string;
  /** Whether it is a trusted proxy. */
  readonly isTrusted: boolean;
}

/** The peer of a connection never changes, so it is determined once, not for every request. */
const peers = new WeakMap<Socket, Peer>();

/** The peer of a connection. Every call for a connection must have the same `trustedProxies`. */
export function peerOf(socket: Socket, trustedProxies: BlockList): Peer {
  const known = peers.get(socket);
  if (known !== undefined) return known;
  const address = plainAddress(socket.remoteAddress ?? '');
  const peer: Peer = { address, isTrusted: isTrusted(address, trustedProxies) };
  if (address !== '') peers.set(socket, peer);
  return peer;
}

/** A socket that listens on :: shows an IPv4 peer as ::ffff:1.2.3.4. */
export function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}

/** The plain address in a text, such as an entry of `X-Forwarded-For`. Empty if it is no address. */
export function writtenAddress(text: string): string {
  const address = plainAddress(withoutPort(text.trim()));
  return isIP(address) === 0 ? '' : address;
}

/** Some proxies write `1.2.3.4:5678` and `[2001:db8::1]:5678`. */
function withoutPort(entry: string): string {
  return /^\[(.+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^(\d+(?:\.\d+){3}):\d+$/.exec(entry)?.[1] ?? entry;
}
