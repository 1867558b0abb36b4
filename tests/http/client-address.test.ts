import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { clientAddress } from '../../src/http/client-address.ts';

const trusted = new BlockList();
trusted.addSubnet('10.0.0.0', 8, 'ipv4');
trusted.addSubnet('fd00::', 8, 'ipv6');

/** As much of a request as tells where it came from. */
function requestFrom(remoteAddress: string | undefined, forwardedFor?: string): IncomingMessage {
  const headers = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor };
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage;
}

describe('the address of a client', () => {
  it.each([
    ['is the peer', '192.0.2.1', undefined, '192.0.2.1'],
    ['is an IPv4 peer in its plain form', '::ffff:192.0.2.1', undefined, '192.0.2.1'],
    [
      'is the peer whatever it claims, unless it is a trusted proxy',
      '192.0.2.1',
      '198.51.100.1',
      '192.0.2.1',
    ],
    ['is what a trusted proxy says', '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
    [
      'is the right-most one that is no trusted proxy',
      '10.0.0.1',
      '203.0.113.9, 198.51.100.1, 10.0.0.7,fd00::1',
      '198.51.100.1',
    ],
    ['is the first proxy when all are trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['is the proxy that wrote down no address', '10.0.0.1', '198.51.100.1, unknown, 10.0.0.2', '10.0.0.2'],
    ['may come with a port', '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
    ['may come in brackets, with a port', '10.0.0.1', '[2001:db8::1]:4711', '2001:db8::1'],
    ['is the proxy for an empty field', '10.0.0.1', '', '10.0.0.1'],
    ['is empty for a connection that is gone', undefined, '198.51.100.1', ''],
  ])('%s', (_claim, peer, forwardedFor, address) => {
    expect(clientAddress(requestFrom(peer, forwardedFor), trusted)).toBe(address);
  });
});
