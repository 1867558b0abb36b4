import { isIPv6 } from 'node:net';
import { ipv6UnitsOf } from './address-list.ts';

/** What an address says about its user. */
export interface AddressSites {
  /** What a single user commonly has: the IPv4 address, or the IPv6 network of 64 bits. */
  readonly site: string;
  /** The IPv6 network of 48 bits; undefined for IPv4. */
  readonly network: string | undefined;
}

export function sitesOf(address: string): AddressSites {
  if (!isIPv6(address)) return { site: address, network: undefined };
  const units = ipv6UnitsOf(address);
  const group = (index: number) => units.charCodeAt(index).toString(16);
  const network = `${group(0)}:${group(1)}:${group(2)}`;
  return { site: `${network}:${group(3)}::/64`, network: `${network}::/48` };
}
