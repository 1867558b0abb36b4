import { isIPv6 } from 'node:net';

/** What an address says about its user. */
export interface AddressSites {
  /** What a single user commonly has: the IPv4 address, or the IPv6 network of 64 bits. */
  readonly site: string;
  /** The IPv6 network of 48 bits; undefined for IPv4. */
  readonly network: string | undefined;
}

export function sitesOf(address: string): AddressSites {
  if (!isIPv6(address)) return { site: address, network: undefined };
  const [before = '', after] = address.split('%', 1)[0]?.toLowerCase().split('::') ?? [];
  const groups = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : Math.max(0, 8 - groups.length - tail.length);
  const all = [...groups, ...Array<string>(zeros).fill('0'), ...tail].map((group) =>
    group.replace(/^0+(?=.)/, ''),
  );
  return { site: `${all.slice(0, 4).join(':')}::/64`, network: `${all.slice(0, 3).join(':')}::/48` };
}
