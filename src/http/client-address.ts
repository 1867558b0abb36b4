import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP, type Socket } from 'node:net';

/**
 * The address that a request came from, as far as it can be trusted: the peer's, or, when the peer is a trusted proxy, the right-most
 * entry of `X-Forwarded-For` that is none. What stands left of that entry is the client's own claim. An entry that is no address ends
 * the search at the proxy that wrote it down.
 */
export function clientAddress(req: IncomingMessage, trustedProxies: BlockList): string {
  const peer = plainAddress(req.socket.remoteAddress ?? '');
  const forwardedFor = req.headers['x-forwarded-for'];
  if (forwardedFor === undefined || !isTrusted(peer, trustedProxies)) return peer;
  const chain = Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor;
  let address = peer;
  for (const entry of chain.split(',').reverse()) {
    const hop = plainAddress(withoutPort(entry.trim()));
    if (isIP(hop) === 0) return address;
    address = hop;
    if (!isTrusted(hop, trustedProxies)) return address;
  }
  return address;
}

/** Whether an address is that of a proxy whose word counts. */
function isTrusted(address: string, trustedProxies: BlockList): boolean {
  const plain = plainAddress(address);
  const family = isIP(plain);
  return family !== 0 && trustedProxies.check(plain, family === 6 ? 'ipv6' : 'ipv4');
}

/** The other end of a connection. */
export interface Peer {
  /** Empty when the connection is gone already. */
  readonly address: string;
  /** Whether it is a proxy whose word counts. */
  readonly isTrusted: boolean;
}

/** A connection's peer stays what it is: this only saves looking at it again for every request. */
const peers = new WeakMap<Socket, Peer>();

/** The peer of a connection of a server whose trusted proxies are always the same. */
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

/** Some proxies write `1.2.3.4:5678` and `[2001:db8::1]:5678`. */
function withoutPort(entry: string): string {
  return /^\[(.+)\](?::\d+)?$/.exec(entry)?.[1] ?? /^(\d+(?:\.\d+){3}):\d+$/.exec(entry)?.[1] ?? entry;
}
