import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { parse as parsePostgresUrl } from 'pg-connection-string';
import { MIN_ROOT_TOKEN_LENGTH } from '../http/credentials/root-token.ts';
import { isReserved, SELF_SERVICE_PATH } from '../paths/path-matcher.ts';
import { systemCodeOf } from '../platform/system-code.ts';
import { PERCENT_ENCODING } from './redis-url.ts';

/** Reads one setting's text. Throws an `Error` whose message says what is allowed and never repeats the value. */
export type Parse<T> = (value: string) => T;

/** Text that `isAllowed` accepts; `what` names the allowed form. */
export function text(isAllowed: (value: string) => boolean, what: string): Parse<string> {
  return (value) => {
    if (!isAllowed(value)) throw new Error(`must be ${what}`);
    return value;
  };
}

/** Text that matches `form`. */
export function pattern(form: RegExp, what: string): Parse<string> {
  return text((value) => form.test(value), what);
}

/** `null` for an empty value. */
export function optional<T>(parse: Parse<T>): Parse<T | null> {
  return (value) => (value === '' ? null : parse(value));
}

/** One word of a closed set. */
export function oneOf<const W extends string>(...words: readonly W[]): Parse<W> {
  return (value) => {
    const word = words.find((candidate) => candidate === value);
    if (word === undefined) throw new Error(`must be one of ${words.join(', ')}`);
    return word;
  };
}

/** `true` or `false`. */
export const booleanWord: Parse<boolean> = (value) => oneOf('true', 'false')(value) === 'true';

/** `on` or `off`. Init systems give their services a `CONSOLE` with the path of a device, which says nothing about ours. */
export const consoleSwitch: Parse<'on' | 'off'> = (value) =>
  value.startsWith('/dev/') ? 'on' : oneOf('on', 'off')(value);

/** A whole number of things. */
export function count(least: number, most: number): Parse<number> {
  return wholeNumber(least, most, 'a whole number');
}

/** A whole number of milliseconds. */
export function milliseconds(least: number, most: number): Parse<number> {
  return wholeNumber(least, most, 'a whole number of milliseconds');
}

/** A fraction from 0 to 1; `what` names the allowed form. */
export function part(what: string): Parse<number> {
  return (value) => {
    const number = /^(\d?\.\d{1,15}|\d)$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= 0 && number <= 1)) throw new Error(`must be ${what}`);
    return number;
  };
}

/** The fraction of requests that is logged: 0 for `off`, 1 for `all`. */
export const accessLog: Parse<number> = (value) =>
  value === 'off'
    ? 0
    : value === 'all'
      ? 1
      : part('off, all, or the part of the requests to log, like 0.01')(value);

/** How many keys have their own metrics: 0 for `off`. */
export const metricsPerKey: Parse<number> = (value) => {
  const number = value === 'off' ? 0 : Number(/^top:([1-9]\d{0,3})$/.exec(value)?.[1] ?? Number.NaN);
  if (!(number <= 1000))
    throw new Error('must be off, or top: and a number of keys from 1 to 1000, like top:20');
  return number;
};

/** A TCP port; 0 lets the system choose one. */
export const port: Parse<number> = wholeNumber(0, 65_535, 'a port');

function wholeNumber(least: number, most: number, what: string): Parse<number> {
  return (value) => {
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= least && number <= most)) throw new Error(`must be ${what} from ${least} to ${most}`);
    return number;
  };
}

/** The path of a file or a folder. */
export const path: Parse<string> = text((value) => value.length <= 1024, 'a path of at most 1024 characters');

/** The backend's base URL. Credentials are rejected: the gateway would not use them, but a log might show them. */
export const backendUrl: Parse<URL> = (value) =>
  webUrl(value, 'https://api.example.com or http://backend:3000/base');

/** The address of the public port as consumers see it: a scheme, a host and perhaps a port. */
export const publicUrl: Parse<string> = (value) => {
  const url = webUrl(value, 'https://api.example.com');
  if (url.pathname !== '/') throw new Error('must not hold a path');
  return url.origin;
};

function webUrl(value: string, example: string): URL {
  const url = URL.parse(value);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new Error(`must be a URL like ${example}`);
  return plainUrl(url);
}

/** Throws if a URL is more than the address of a server and a path. */
export function plainUrl(url: URL): URL {
  if (url.username !== '' || url.password !== '') throw new Error('must not hold a user name or a password');
  if (url.search !== '' || url.hash !== '') throw new Error('must not hold a query or a fragment');
  return url;
}

/** The address of a page, which a browser opens on a click: no script, no file. */
export const webLink: Parse<string> = (value) => linkWith(value, /^https?:$/, 'https://example.com/page');

/** The same, or an address for mail. */
export const supportLink: Parse<string> = (value) =>
  linkWith(value, /^(https?|mailto):$/, 'https://example.com/page or mailto:help@example.com');

function linkWith(value: string, scheme: RegExp, example: string): string {
  const url = URL.parse(value);
  if (url === null || !scheme.test(url.protocol) || value.length > 1024)
    throw new Error(`must be an address like ${example}`);
  if (url.username !== '' || url.password !== '') throw new Error('must not hold a user name or a password');
  return url.href;
}

/** A colour as `#rrggbb`, in lower case. */
export const color: Parse<string> = (value) =>
  pattern(/^#[0-9a-f]{6}$/, 'a colour like #4f46e5')(value.toLowerCase());

/** The URL of one Postgres server. The files that it names can be read. */
export const postgresUrl: Parse<string> = (value) => {
  const url = URL.parse(value);
  if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol) || url.hostname === '')
    throw new Error('must be a URL of one server that starts with postgres:// or postgresql://');
  if (`${url.hostname}${url.searchParams.get('host')}`.includes(','))
    throw new Error('must name one host: several are not supported');
  requireFiles(url);
  try {
    parsePostgresUrl(value);
  } catch (error) {
    throw new Error(
      error instanceof URIError
        ? PERCENT_ENCODING
        : 'must name the file of an authority as sslrootcert with sslmode=verify-ca',
    );
  }
  return value;
};

function requireFiles({ searchParams }: URL): void {
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const file = searchParams.get(name);
    if (!file) continue;
    try {
      readFileSync(file);
    } catch (error) {
      throw new Error(`the file of ${name} can not be read (${systemCodeOf(error)})`);
    }
  }
}

/** Root tokens that fit in a Bearer header (RFC 6750 2.1); all are valid. */
export const rootTokens: Parse<readonly string[]> = (value) => {
  const tokens = list(value);
  for (const token of tokens) {
    if (token.length < MIN_ROOT_TOKEN_LENGTH)
      throw new Error(`each token must have at least ${MIN_ROOT_TOKEN_LENGTH} characters`);
    if (!/^[A-Za-z0-9._~+/-]+=*$/.test(token))
      throw new Error('a token may hold only letters, digits and -._~+/ (and = at its end)');
  }
  return tokens;
};

/** The tokens of other gateways: all are valid, so that one can be replaced while the other still works. */
export const authorizeTokens: Parse<readonly string[]> = (value) => {
  const tokens = list(value);
  for (const token of tokens) {
    if (!/^[\x21-\x7e]{16,256}$/.test(token))
      throw new Error('each token must have 16 to 256 visible ASCII characters, and no comma');
  }
  return tokens;
};

/** 32-byte keys in base64: the first one seals, each can open. */
export const encryptionKeys: Parse<readonly Buffer[]> = (value) =>
  list(value).map((encoded) => {
    const key = Buffer.from(encoded, 'base64');
    const isExact =
      key.toString('base64').replace(/=+$/, '') ===
      encoded.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '');
    if (key.length !== 32 || !isExact)
      throw new Error('each key must be 32 bytes in base64 (make one with: openssl rand -base64 32)');
    return key;
  });

/** The name of a request header, in lower case. Headers that carry credentials or framing are rejected. */
export const headerName: Parse<string> = (value) => {
  const name = value.toLowerCase();
  if (!/^[a-z0-9!#$%&'*+.^`|~-]{1,64}$/.test(name))
    throw new Error('must be a header name of at most 64 characters, without _');
  if (/^(authorization|x-api-key|host|cookie|connection|content-length|transfer-encoding)$/.test(name))
    throw new Error('must not be a header that carries credentials or framing');
  return name;
};

/** Addresses and CIDR blocks, comma-separated. */
export const networks: Parse<BlockList> = (value) => {
  const blocks = new BlockList();
  for (const entry of list(value)) addNetwork(blocks, entry);
  return blocks;
};

function addNetwork(blocks: BlockList, entry: string): void {
  const [address = '', bits, ...rest] = entry.split('/');
  const version = isIP(address);
  const most = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
  if (version === 0 || rest.length > 0 || prefix < 0 || prefix > most) {
    throw new Error('must be IP addresses and networks like 10.0.0.0/8, separated by commas');
  }
  blocks.addSubnet(address, prefix, version === 4 ? 'ipv4' : 'ipv6');
}

/** `*`, or the exact origins (scheme, host, port) that browsers may call from. Empty = no CORS at all. */
export const corsOrigins: Parse<readonly string[]> = (value) => {
  const origins = list(value);
  if (origins.length === 1 && origins[0] === '*') return origins;
  for (const origin of origins) {
    if (URL.parse(origin)?.origin !== origin)
      throw new Error('must be * or origins like https://app.example.com, separated by commas');
  }
  return origins;
};

/** Percentages in ascending order. Empty = none. */
export const percentages: Parse<readonly number[]> = (value) => {
  const numbers = list(value).map((entry) => (/^\d{1,3}$/.test(entry) ? Number(entry) : Number.NaN));
  const isValid = numbers.every((number) => number >= 1 && number <= 100);
  if (!isValid || numbers.length > 5 || new Set(numbers).size < numbers.length)
    throw new Error(
      'must be at most 5 different percentages from 1 to 100, separated by commas, like 80,100',
    );
  return numbers.toSorted((one, other) => one - other);
};

/** The path of self-service. It allows only characters that no client and no proxy encodes in another way. */
export const selfServicePath: Parse<string> = (value) => {
  if (value.length > 128 || !/^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/.test(value))
    throw new Error(
      'must be a path like /tollgate/self of letters, digits and -._~, without a slash at its end',
    );
  if (isReserved(value) && value !== SELF_SERVICE_PATH)
    throw new Error('must not be a path of the management interface');
  return value;
};

/** Entries separated by commas. Only an empty value gives none: a list of commas alone is a mistake, not a setting that is not set. */
function list(value: string): readonly string[] {
  const entries = value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  if (value !== '' && entries.length === 0) throw new Error('must have an entry beside its commas');
  return entries;
}
