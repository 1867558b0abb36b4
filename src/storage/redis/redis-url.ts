/** What a Redis URL says. */
export interface RedisAddress {
  /** At least one. In cluster and sentinel mode the servers to ask first. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly isTls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Number of the database; 0 in cluster mode. */
  readonly database: number;
  /** Name under which sentinels know the master. */
  readonly masterName: string;
  /** Password of the sentinels themselves. */
  readonly sentinelPassword: string | undefined;
}

const REDIS_PORT = 6379;

/**
 * Reads `redis://user:password@host:port/database`, or `rediss://` for TLS. Several nodes are separated by commas, as
 * `redis://:password@a:7000,b:7000` or each with its scheme: the first one's scheme and credentials hold for all. For sentinels the
 * nodes are the sentinels, the credentials are the master's, the path after the last node is the master's name (default
 * `mymaster`), and `?db=` and `?sentinelPassword=` give the rest. Throws a `TypeError` that does not quote the URL, which holds
 * a password.
 */
export function parseRedisUrl(text: string): RedisAddress {
  const parts = text.split(',').map((part) => part.trim());
  const urls = parts.map((part, index) =>
    readUrl(index === 0 || part.includes('://') ? part : `redis://${part}`),
  );
  const [first] = urls;
  const last = urls.at(-1);
  if (first === undefined || last === undefined) throw new TypeError('a Redis URL must not be empty');
  const path = decodeURIComponent(last.pathname.slice(1));
  const isNumber = /^\d{1,5}$/.test(path);
  return {
    nodes: urls.map(nodeOf),
    isTls: first.protocol === 'rediss:',
    username: decodeURIComponent(first.username) || undefined,
    password: decodeURIComponent(first.password) || undefined,
    database: Number(last.searchParams.get('db') ?? (isNumber ? path : 0)),
    masterName: path === '' || isNumber ? 'mymaster' : path,
    sentinelPassword: last.searchParams.get('sentinelPassword') ?? undefined,
  };
}

function readUrl(text: string): URL {
  if (!URL.canParse(text)) throw new TypeError('a Redis URL must look like redis://user:password@host:port');
  const url = new URL(text);
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new TypeError('a Redis URL must begin with redis:// or rediss://');
  }
  return url;
}

function nodeOf(url: URL): { host: string; port: number } {
  return {
    // The brackets of an IPv6 address belong to the URL, not to the address.
    host: url.hostname.replace(/^\[|\]$/g, '') || 'localhost',
    port: url.port === '' ? REDIS_PORT : Number(url.port),
  };
}
