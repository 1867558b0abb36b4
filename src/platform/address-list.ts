import { isIP, SocketAddress } from 'node:net';

/**
 * IP addresses and networks (CIDR), compiled so that a look-up among a hundred costs little more than among one. An IPv6 address that maps
 * an IPv4 one (`::ffff:192.0.2.1`) equals that IPv4 address, in the list and in `includes`. Otherwise `::/0` contains only IPv6 addresses.
 */
export class AddressList {
  readonly #entries: readonly string[];
  readonly #ipv4: readonly AddressRange[];
  readonly #ipv6: readonly AddressRange[];

  /** Each entry must be valid for `isNetwork`. Bits after the prefix are ignored. */
  constructor(entries: readonly string[]) {
    const ranges = entries.map(rangeOf);
    this.#entries = entries;
    this.#ipv4 = merged(ranges.filter(({ first }) => first.length === IPV4_UNITS));
    this.#ipv6 = merged(ranges.filter(({ first }) => first.length === IPV6_UNITS));
  }

  /** Whether a valid address is in the list or in one of its networks. False for an empty text, which stands for an unknown address. */
  includes(address: string): boolean {
    const sought = unitsOf(address);
    const ranges = sought.length === IPV4_UNITS ? this.#ipv4 : this.#ipv6;
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ranges[middle]?.last ?? '') < sought) low = middle + 1;
      else high = middle;
    }
    const range = ranges[low];
    return range !== undefined && range.first <= sought;
  }

  /** The entries as they were given. */
  toJSON(): readonly string[] {
    return this.#entries;
  }
}

/** Whether a text is an IPv4 or IPv6 address without a zone, or a network: an address, a slash, and the length of the prefix. */
export function isNetwork(text: string): boolean {
  const { address, prefix } = partsOf(text);
  const version = address.includes('%') ? 0 : isIP(address);
  return version !== 0 && prefix <= (version === 4 ? IPV4_BITS : IPV6_BITS);
}

/** Whether a valid network has bits after its prefix, such as `10.1.2.3/8`. A single address has none. */
export function hasHostBits(network: string): boolean {
  const { units, prefix, bitsPerUnit } = networkUnitsOf(network);
  for (let i = Math.floor(prefix / bitsPerUnit); i < units.length; i += 1) {
    if ((units.charCodeAt(i) & hostMask(prefix, i, bitsPerUnit)) !== 0) return true;
  }
  return false;
}

/** For a network with bits after the prefix, the network without them: `10.0.0.0/8` for `10.1.2.3/8`. Otherwise undefined. */
export function networkWithoutHostBits(text: string): string | undefined {
  if (!isNetwork(text) || !hasHostBits(text)) return undefined;
  const { address, prefix } = partsOf(text);
  const { first } = rangeOf(text);
  const numbers = first.split('').map((unit) => unit.charCodeAt(0));
  if (numbers.length === IPV4_UNITS)
    return `${numbers.join('.')}/${address.includes(':') ? prefix - MAPPED_BITS : prefix}`;
  const groups = numbers.map((number) => number.toString(16)).join(':');
  return `${new SocketAddress({ address: groups, family: 'ipv6' }).address}/${prefix}`;
}

/** The addresses from `first` to `last`, both inclusive, in the form of `unitsOf`. */
interface AddressRange {
  readonly first: string;
  readonly last: string;
}

const IPV4_UNITS = 4;
const IPV6_UNITS = 8;
const IPV4_BITS = 32;
const IPV6_BITS = 128;
const MAPPED_BITS = 96;
const DOT = 0x2e;
const PERCENT = 0x25;
const COLON = 0x3a;
const DIGIT_ZERO = 0x30;
const DIGIT_NINE = 0x39;
const LETTER_A = 0x61;
const LOWER_CASE_BIT = 0x20;
/** The first six groups of an IPv6 address that maps an IPv4 one. */
const MAPPED = '\0\0\0\0\0\uffff';

/** A single address has the longest prefix. A malformed prefix becomes longer than any valid one. */
function partsOf(text: string): { readonly address: string; readonly prefix: number } {
  const [address = '', bits, ...rest] = text.split('/');
  const longest = address.includes(':') ? IPV6_BITS : IPV4_BITS;
  const isWellFormed = rest.length === 0 && (bits === undefined || /^(?:0|[1-9]\d{0,2})$/.test(bits));
  return { address, prefix: isWellFormed ? Number(bits ?? longest) : Number.POSITIVE_INFINITY };
}

/** The units of a network as it is written: a mapped IPv4 address is an IPv6 one here. */
interface NetworkUnits {
  readonly units: string;
  readonly prefix: number;
  readonly bitsPerUnit: number;
}

function networkUnitsOf(text: string): NetworkUnits {
  const { address, prefix } = partsOf(text);
  return address.includes(':')
    ? { units: ipv6UnitsOf(address), prefix, bitsPerUnit: IPV6_BITS / IPV6_UNITS }
    : { units: ipv4UnitsOf(address), prefix, bitsPerUnit: IPV4_BITS / IPV4_UNITS };
}

function rangeOf(text: string): AddressRange {
  const range = boundsOf(networkUnitsOf(text));
  const [first, last] = [unmapped(range.first), unmapped(range.last)];
  // A network is an IPv4 network only if it is completely mapped.
  return first.length === last.length ? { first, last } : range;
}

function boundsOf({ units, prefix, bitsPerUnit }: NetworkUnits): AddressRange {
  const bound = (fill: number) =>
    String.fromCharCode(
      // By code units, not characters: a group from d800 followed by one from dc00 would be a surrogate pair, one character.
      ...units.split('').map((unit, index) => {
        const free = hostMask(prefix, index, bitsPerUnit);
        return (unit.charCodeAt(0) & ~free) | (fill & free);
      }),
    );
  return { first: bound(0), last: bound(2 ** bitsPerUnit - 1) };
}

/** The bits of a unit that come after the prefix. */
function hostMask(prefix: number, index: number, bitsPerUnit: number): number {
  const fixedBits = Math.min(bitsPerUnit, Math.max(0, prefix - index * bitsPerUnit));
  return (2 ** bitsPerUnit - 1) >> fixedBits;
}

/** Sorted and without overlaps. */
function merged(ranges: readonly AddressRange[]): readonly AddressRange[] {
  const result: AddressRange[] = [];
  for (const range of ranges.toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = result.at(-1);
    if (before === undefined || before.last < range.first) result.push(range);
    else if (before.last < range.last) result.splice(-1, 1, { first: before.first, last: range.last });
  }
  return result;
}

/**
 * An address as text that sorts like the address: one code unit for each byte of an IPv4 address, or for each group of an IPv6 one. Strings
 * of a few units are cheaper to compare than anything else of this size.
 */
function unitsOf(address: string): string {
  return address.includes(':') ? unmapped(ipv6UnitsOf(address)) : ipv4UnitsOf(address);
}

function ipv4UnitsOf(address: string): string {
  if (address === '') return '';
  const bytes: [number, number, number, number] = [0, 0, 0, 0];
  let at = 0;
  for (let i = 0; i < address.length; i += 1) {
    const code = address.charCodeAt(i);
    if (code === DOT) at += 1;
    else bytes[at] = (bytes[at] ?? 0) * 10 + code - DIGIT_ZERO;
  }
  return String.fromCharCode(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/** One code unit for each group of an IPv6 address. Ignores the zone: on every link, equal addresses count as the same. */
export function ipv6UnitsOf(text: string): string {
  const address = text.includes('.') ? withoutDots(text) : text;
  const groups: number[] = [];
  let group = -1;
  let gap = IPV6_UNITS;
  for (let i = 0; i < address.length; i += 1) {
    const code = address.charCodeAt(i);
    if (code === PERCENT) break;
    if (code !== COLON) group = Math.max(0, group) * 16 + hexDigit(code);
    else if (group < 0) gap = groups.length;
    else {
      groups.push(group);
      group = -1;
    }
  }
  if (group >= 0) groups.push(group);
  while (groups.length < IPV6_UNITS) groups.splice(gap, 0, 0);
  return String.fromCharCode(...groups);
}

/** The value of a hexadecimal digit, in either case. */
function hexDigit(code: number): number {
  return code <= DIGIT_NINE ? code - DIGIT_ZERO : (code | LOWER_CASE_BIT) - LETTER_A + 10;
}

/** Rewrites the last two groups, which may be in the form of an IPv4 address, as groups, without a zone. */
function withoutDots(address: string): string {
  return address
    .replace(/%.*/s, '')
    .replace(/(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/, (_all, ...bytes: string[]) => {
      const [a = 0, b = 0, c = 0, d = 0] = bytes.map(Number);
      return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
    });
}

/** The units of the IPv4 address that an IPv6 one maps. Those of any other address stay as they are. */
function unmapped(units: string): string {
  if (!units.startsWith(MAPPED)) return units;
  const high = units.charCodeAt(IPV6_UNITS - 2);
  const low = units.charCodeAt(IPV6_UNITS - 1);
  return String.fromCharCode(high >> 8, high & 0xff, low >> 8, low & 0xff);
}
