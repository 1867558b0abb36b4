import { BlockList } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { AddressPolicy } from '../../src/events/delivery/address-policy.ts';

/** A policy for which every name has these addresses. */
function policyWith(
  addresses: readonly string[],
  allowed: readonly string[] = [],
  allowHttp = false,
): AddressPolicy {
  const allowedNetworks = new BlockList();
  for (const network of allowed) {
    const [address = '', bits] = network.split('/');
    allowedNetworks.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return new AddressPolicy({ allowHttp, allowedNetworks }, async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  );
}

const NOT_PUBLIC = [
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '100.100.100.200',
  '127.0.0.1',
  '127.255.255.255',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:a9fe:a9fe',
  '::ffff:0:127.0.0.1',
  '64:ff9b::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b::1',
  '64:ff9b::',
  '64:ff9b:1::808:808',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '2002:a9fe:a9fe::1',
  '2002:808:808::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  '4000::1',
];

describe('the address of a webhook', () => {
  it.each(NOT_PUBLIC)('may not be %s, by name', async (address) => {
    await expect(policyWith([address]).check('https://hooks.example.com/')).rejects.toMatchObject({
      code: 'webhook_url_not_allowed',
      details: { rule: 'public_address' },
    });
  });

  it.each(NOT_PUBLIC.filter((address) => !address.includes('%')))('may not be %s itself', async (address) => {
    const host = address.includes(':') ? `[${address}]` : address;
    await expect(policyWith([]).check(`https://${host}/`)).rejects.toMatchObject({
      details: { rule: 'public_address' },
    });
  });

  it.each([
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0x7f.1/',
    'https://0177.0.0.1/',
    'https://127.1/',
    'https://127.0.0.1./',
    'https://①②⑦.0.0.1/',
    'https://[::ffff:7f00:1]:8443/x',
  ])('may not be loopback as %s', async (url) => {
    await expect(policyWith(['8.8.8.8']).check(url)).rejects.toMatchObject({
      details: { rule: 'public_address' },
    });
  });

  it.each([
    ['http://hooks.example.com/', 'https_only'],
    ['ftp://hooks.example.com/', 'https_only'],
    ['file:///etc/passwd', 'https_only'],
    ['hooks.example.com', 'https_only'],
    ['https://', 'https_only'],
    ['https://user:secret@hooks.example.com/', 'no_credentials'],
    ['https://user@hooks.example.com/', 'no_credentials'],
    ['https://hooks.example.com/#', 'no_fragment'],
  ])('may not be %s', async (url, rule) => {
    await expect(policyWith(['8.8.8.8']).check(url)).rejects.toMatchObject({ details: { rule } });
  });

  it('may not be a name with one address that is not public among others', async () => {
    await expect(policyWith(['8.8.8.8', '10.0.0.1']).check('https://hooks.example.com/')).rejects.toThrow();
  });

  it.each(['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111', '64:ff9b::808:808', '::ffff:8.8.8.8', '172.32.0.1'])(
    'may be %s',
    async (address) => {
      await policyWith([address]).check('https://hooks.example.com/');
    },
  );

  it.each([
    ['127.0.0.1', '127.0.0.0/8'],
    ['::ffff:127.0.0.1', '127.0.0.0/8'],
    ['64:ff9b::a00:1', '10.0.0.0/8'],
    ['fd00::1', 'fd00::/8'],
  ])('may be %s where %s is allowed', async (address, network) => {
    await policyWith([address], [network], true).check('http://hooks.example.com/');
  });

  it('is not used for http: any more when this is not allowed any more', async () => {
    await expect(policyWith(['8.8.8.8']).addressesOf(new URL('http://hooks.example.com/'))).rejects.toThrow();
  });

  it('may be a name that can not be resolved yet', async () => {
    const policy = new AddressPolicy({ allowHttp: false, allowedNetworks: new BlockList() }, async () => {
      throw new Error('not found');
    });
    await policy.check('https://hooks.example.com/');
  });
});
