import type { SeededRandom } from '../../chaos/seeded-random.ts';

/** The keys of a sequence. Each is made three times, to be used in the same way on three ways in: see `Way`. */
export const KEY_KINDS = ['small', 'restricted', 'disabled'] as const;
export type KeyKind = (typeof KEY_KINDS)[number];

/** Where a request is decided. */
export const WAYS = ['proxied', 'asked', 'verified'] as const;
export type Way = (typeof WAYS)[number];

/** The network that the key `restricted` may be used from. */
export const ALLOWED_NETWORK = '203.0.113.0/24';

/** The request of a consumer, whatever way it is decided. */
export interface Original {
  readonly method: string;
  readonly path: string;
  readonly credential: KeyKind | 'none' | 'unknown' | 'malformed' | 'long' | 'empty';
  readonly presented: 'bearer' | 'lower case bearer' | 'x-api-key' | 'basic';
  /** The consumer's address: a new one each time, so that no address uses up its wrong keys. */
  readonly address: string;
  readonly customerId: string | undefined;
  readonly origin: string | undefined;
  readonly isPreflight: boolean;
}

export function generateOriginal(random: SeededRandom): Original {
  const isPreflight = random.between(1, 10) === 1;
  const isStrange = random.between(1, 3) === 1;
  // Never two faults, of which either may be named.
  const methods = isStrange ? METHODS : [...METHODS, 'TRACE'];
  return {
    method: isPreflight ? 'OPTIONS' : random.pick(methods),
    path: isStrange ? strangePath(random) : random.pick(PATHS),
    credential: random.between(1, 3) > 1 ? 'small' : random.pick(CREDENTIALS),
    presented: random.between(1, 3) > 1 ? 'bearer' : random.pick(PRESENTATIONS),
    address:
      random.between(1, 2) === 1
        ? `203.0.113.${random.between(1, 254)}`
        : [11, 0, 0, 1].map((least) => random.between(least, 99)).join('.'),
    customerId: random.between(1, 4) === 1 ? random.pick(CUSTOMER_IDS) : undefined,
    origin: isPreflight || random.between(1, 6) === 1 ? random.pick(ORIGINS) : undefined,
    isPreflight,
  };
}

/** Pieces in any order: what they normalise or decode to differs between programs. */
function strangePath(random: SeededRandom): string {
  const count = random.between(1, 5);
  return `/${Array.from({ length: count }, () => random.pick(PIECES)).join('')}`;
}

/** The page that may make requests, and another one. */
export const ALLOWED_ORIGIN = 'https://app.example.com';
const ORIGINS = [ALLOWED_ORIGIN, 'https://evil.example.com', `https://${'x'.repeat(600)}`, 'no origin', ''];
const CUSTOMER_IDS = ['c1', 'c2', 'c'.repeat(128), 'c'.repeat(129), ''];
const METHODS = ['GET', 'GET', 'GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'PROPFIND'];
/** `/free` costs nothing, and a POST to `/costly` costs three. */
const PATHS = [
  '/',
  '/v1/orders?x=%2F',
  '/free',
  '/costly',
  '/costly/',
  '/FREE',
  '//free',
  '/free?/../costly',
];
const PIECES = [
  ...['free', 'costly', 'a', '/', '//', '.', '..', '/../', '%2e', '%2E%2e', '%2f', '%5c', '\\', '%00', '%'],
  ...['%zz', '%c3%a4', '\xe4', ';x=y', '?', '?a=b', '#', ':', '@', '*', '_tollgate', 'authorize', '%66ree'],
];
const CREDENTIALS: readonly Original['credential'][] = [
  ...KEY_KINDS,
  ...(['none', 'unknown', 'malformed', 'long', 'empty'] as const),
];
const PRESENTATIONS: readonly Original['presented'][] = ['lower case bearer', 'x-api-key', 'basic'];
