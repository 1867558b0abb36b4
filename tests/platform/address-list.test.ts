import { BlockList, isIPv6 } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  AddressList,
  hasHostBits,
  isNetwork,
  networkWithoutHostBits,
} from '../../src/platform/address-list.ts';

const ipv4Network = fc.tuple(fc.ipV4(), fc.nat(32)).map(([address, prefix]) => `${address}/${prefix}`);
const ipv6Network = fc.tuple(fc.ipV6(), fc.nat(128)).map(([address, prefix]) => `${address}/${prefix}`);

/** What Node says of addresses of the network's own family. */
function isInSubnet(address: string, network: string): boolean {
  const [base = '', prefix] = network.split('/');
  const list = new BlockList();
  const family = isIPv6(base) ? 'ipv6' : 'ipv4';
  list.addSubnet(base, Number(prefix), family);
  return list.check(address, family);
}

/** An address that shares some bits with the network's. */
function near(network: string, other: string, shared: number): string {
  const [base = ''] = network.split('/');
  const separator = base.includes(':') ? ':' : '.';
  const groups = base.split(separator);
  if (base.includes('::') || other.includes('::') || base.includes('.') !== other.includes('.')) return base;
  return [...groups.slice(0, shared), ...other.split(separator).slice(shared)].join(separator);
}

describe('a list of addresses', () => {
  it('holds of each family the addresses that are in one of its networks', () => {
    const lists = fc
      .array(ipv4Network, { maxLength: 8 })
      .chain((networks) => fc.tuple(fc.constant(networks), fc.ipV4(), fc.nat(7), fc.nat(4)));
    fc.assert(
      fc.property(lists, ([networks, random, which, shared]) => {
        const address = near(networks[which] ?? random, random, shared);
        const expected = networks.some((network) => isInSubnet(address, network));
        expect(new AddressList(networks).includes(address)).toBe(expected);
      }),
    );
    const ofIpv6 = fc
      .array(ipv6Network, { maxLength: 8 })
      .chain((networks) => fc.tuple(fc.constant(networks), fc.ipV6(), fc.nat(7), fc.nat(8)));
    fc.assert(
      fc.property(ofIpv6, ([networks, random, which, shared]) => {
        const address = near(networks[which] ?? random, random, shared);
        const expected = networks.some((network) => isInSubnet(address, network));
        expect(new AddressList(networks).includes(address)).toBe(expected);
      }),
    );
  });

  it.each<readonly [string, string, boolean]>([
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '9.255.255.255', false],
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.2', false],
    ['0.0.0.0/0', '255.255.255.255', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '2001:db8::1', true],
    ['::/0', '192.0.2.1', false],
    ['::/0', '::ffff:192.0.2.1', false],
    ['::ffff:0:0/96', '192.0.2.1', true],
    ['192.0.2.0/24', '::ffff:192.0.2.9', true],
    ['192.0.2.0/24', '::ffff:c000:209', true],
    ['192.0.2.0/24', '0:0:0:0:0:FFFF:192.0.2.9', true],
    ['192.0.2.0/24', '::192.0.2.9', false],
    ['::ffff:192.0.2.0/120', '192.0.2.9', true],
    ['2001:DB8::/32', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', true],
    ['2001:db8::/32', '2001:db9::', false],
    ['2001:db8:d800:dc00::/64', '2001:db8:d800:dc00::1', true],
    ['2001:db8:d800:dc00::/64', '2001:db8:d800:dc01::1', false],
    ['::216.0.220.0/112', '::216.0.220.9', true],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['fe80::1', 'fe80::1%10.0.0.1', true],
    ['192.0.2.1', '::ffff:192.0.2.1%10.0.0.2', true],
    ['10.0.0.2', '::ffff:192.0.2.1%10.0.0.2', false],
    ['::1', '::1', true],
    ['0.0.0.0/0', '', false],
    ['::/0', '', false],
  ])('%s holds %s: %s', (network, address, isIncluded) => {
    expect(new AddressList([network]).includes(address)).toBe(isIncluded);
  });

  it('without entries holds nothing', () => {
    expect(new AddressList([]).includes('192.0.2.1')).toBe(false);
  });

  it('joins networks that overlap', () => {
    const list = new AddressList(['10.0.0.0/9', '10.0.0.0/8', '10.64.0.0/10', '10.200.0.0/16', '12.0.0.1']);
    for (const inside of ['10.0.0.0', '10.127.1.1', '10.255.255.255', '12.0.0.1'])
      expect(list.includes(inside)).toBe(true);
    for (const outside of ['9.255.255.255', '11.0.0.0', '12.0.0.0', '12.0.0.2'])
      expect(list.includes(outside)).toBe(false);
  });
});

describe('a network', () => {
  it('without bits behind its prefix is one of the same addresses', () => {
    fc.assert(
      fc.property(fc.oneof(ipv4Network, ipv6Network), fc.oneof(fc.ipV4(), fc.ipV6()), (network, address) => {
        expect(isNetwork(network)).toBe(true);
        const written = networkWithoutHostBits(network) ?? network;
        expect(networkWithoutHostBits(written)).toBeUndefined();
        expect(new AddressList([written]).includes(address)).toBe(
          new AddressList([network]).includes(address),
        );
      }),
    );
  });

  it.each([
    ['10.0.0.1/31', '10.0.0.0/31'],
    ['128.0.0.0/0', '0.0.0.0/0'],
    ['2001:db8:0:1::/63', '2001:db8::/63'],
    ['::ffff:10.0.0.1/127', '10.0.0.0/31'],
  ])('%s is written %s, without the bits after its prefix', (network, written) => {
    expect(hasHostBits(network)).toBe(true);
    expect(networkWithoutHostBits(network)).toBe(written);
    expect(hasHostBits(written)).toBe(false);
  });

  it('keeps every group before its prefix', () => {
    expect(networkWithoutHostBits('2001:db8:d800:dc00::1/64')).toBe('2001:db8:d800:dc00::/64');
  });

  it.each(['', 'a', '1.2.3', '1.2.3.4/', '1.2.3.4/33', '1.2.3.4/8/8', '1.2.3.4/1e1', '::/129', '::1%lo/128'])(
    '%j is none',
    (text) => {
      expect(isNetwork(text)).toBe(false);
      expect(networkWithoutHostBits(text)).toBeUndefined();
    },
  );
});
