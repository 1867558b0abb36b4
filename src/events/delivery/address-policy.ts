import type { LookupAddress } from 'node:dns';
import { type BlockList, isIP, SocketAddress } from 'node:net';
import { WebhookUrlNotAllowed } from '../../errors.ts';
import { AddressList } from '../../platform/address-list.ts';
import { withinDeadline } from '../../platform/within-deadline.ts';

/** Where webhooks may lead besides public addresses. */
export interface AddressRules {
  /** Whether `http:` is allowed. */
  readonly allowHttp: boolean;
  /** Networks that are allowed although they are not public. */
  readonly allowedNetworks: BlockList;
}

/** All addresses of a host name, as `dns.lookup` finds them. Rejects if there are none. */
export type ResolveName = (name: string) => Promise<readonly LookupAddress[]>;

/** A name that resolves to an address which is not allowed. */
export class AddressNotAllowed extends Error {
  constructor() {
    super('The address is not allowed.');
    this.name = 'AddressNotAllowed';
  }
}

/** IPv4 networks that are not public, from IANA's registry of special-purpose addresses, and addresses of metadata services. */
const NOT_PUBLIC_IPV4 = new AddressList([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // The platform channel of Azure: a public address that leads to the host of the virtual machine.
  '168.63.129.16/32',
  // Link-local, with the metadata services of most clouds.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]);
/** All public IPv6 addresses are here: loopback, unique local, link-local, multicast and compatible ones are outside. */
const GLOBAL_UNICAST = new AddressList(['2000::/3']);
/** The parts of it that are not public: protocol assignments with Teredo, documentation, 6to4. */
const NOT_PUBLIC_IPV6 = new AddressList([
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
]);
/** The prefix of NAT64: the last 32 bits are an IPv4 address, to which the packets go. */
const NAT64 = new AddressList(['64:ff9b::/96']);

/** How long the check of a written address waits for the name. Milliseconds. */
const CHECK_TIMEOUT_MS = 2000;

/** Decides which addresses webhooks may lead to. */
export class AddressPolicy {
  readonly #rules: AddressRules;
  readonly #resolve: ResolveName;

  constructor(rules: AddressRules, resolve: ResolveName) {
    this.#rules = rules;
    this.#resolve = resolve;
  }

  /**
   * Checks an address when it is written. A name that can't be resolved is accepted: each attempt checks again. Throws
   * `WebhookUrlNotAllowed`.
   */
  async check(text: string): Promise<void> {
    const url = URL.parse(text);
    if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
      throw new WebhookUrlNotAllowed(
        'https_only',
        'The url must be an absolute URL that begins with https://.',
      );
    if (url.protocol === 'http:' && !this.#rules.allowHttp)
      throw new WebhookUrlNotAllowed(
        'https_only',
        'The url must begin with https://. WEBHOOK_ALLOW_HTTP allows http:// for development.',
      );
    if (url.username !== '' || url.password !== '')
      throw new WebhookUrlNotAllowed(
        'no_credentials',
        'The url must not hold a user or a password: use headers.',
      );
    if (text.includes('#'))
      throw new WebhookUrlNotAllowed('no_fragment', 'The url must not have a fragment (#).');
    try {
      await withinDeadline(
        this.addressesOf(url),
        CHECK_TIMEOUT_MS,
        () => new Error('The name was not resolved in time.'),
      );
    } catch (error) {
      if (error instanceof AddressNotAllowed)
        throw new WebhookUrlNotAllowed(
          'public_address',
          'The url leads to an address that is not public: private, loopback, link-local, multicast, reserved, or of a metadata service. WEBHOOK_ALLOWED_NETWORKS allows networks.',
        );
    }
  }

  /**
   * The addresses of the host, all of them allowed. Rejects with `AddressNotAllowed` if one of them is not, if it has none, or if the rules
   * do not allow the scheme any more.
   */
  async addressesOf({ protocol, hostname }: URL): Promise<readonly LookupAddress[]> {
    if (protocol === 'http:' && !this.#rules.allowHttp) throw new AddressNotAllowed();
    // The URL parser has turned decimal, octal and hexadecimal forms of IPv4 addresses into dotted ones.
    const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    const family = isIP(host);
    const found = family === 0 ? await this.#resolve(host) : [{ address: host, family }];
    if (found.length === 0 || !found.every(({ address }) => this.#isAllowed(address)))
      throw new AddressNotAllowed();
    return found;
  }

  #isAllowed(address: string): boolean {
    const family = isIP(address);
    if (family === 0) return false;
    if (this.#rules.allowedNetworks.check(address, family === 4 ? 'ipv4' : 'ipv6')) return true;
    const embedded = family === 6 ? embeddedIpv4(address) : address;
    if (embedded === undefined) return GLOBAL_UNICAST.includes(address) && !NOT_PUBLIC_IPV6.includes(address);
    if (embedded !== address && this.#rules.allowedNetworks.check(embedded, 'ipv4')) return true;
    return !NOT_PUBLIC_IPV4.includes(embedded);
  }
}

/** Mapped addresses equal the IPv4 ones in a list. */
const ALL_IPV4 = new AddressList(['0.0.0.0/0']);

/** The IPv4 address that an IPv4-mapped or NAT64 address leads to; undefined for other IPv6 addresses. */
function embeddedIpv4(address: string): string | undefined {
  const isMapped = ALL_IPV4.includes(address);
  if (!isMapped && !NAT64.includes(address)) return undefined;
  const written = new SocketAddress({ address: address.replace(/%.*/, ''), family: 'ipv6' }).address;
  const dotted = /\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.exec(written)?.[0];
  if (dotted !== undefined) return dotted;
  const [high = 0, low = 0] = written
    .split(':')
    .slice(-2)
    .map((group) => Number.parseInt(group || '0', 16));
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}
