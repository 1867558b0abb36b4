const REDIS_PORT = 6379;
const DATABASE_NUMBER = /^\d{1,5}$/;
/** What an address must be whose escapes can't be decoded. */
export const PERCENT_ENCODING = 'must be percent-encoded properly: write a percent sign itself as %25';

/**
 * Reads `redis://user:password@host:port/database`, or `rediss://` for TLS. Several nodes are separated by commas, as
 * `redis://:password@a:7000,b:7000` or each with its scheme: the first one's scheme and credentials hold for all. With sentinels the
 * nodes are the sentinels, the credentials are the master's, and the path after the last node is the master's name; `?db=` and
 * `?sentinelPassword=` are optional. Missing parts are undefined. Throws an `Error` that does not quote the URL, which holds a password.
 */
export function redisUrl(text: string) {
  const urls = text.split(',').map((node, index) => nodeUrl(node.trim(), index));
  const [first] = urls;
  const last = urls.at(-1);
  if (first === undefined || last === undefined) throw new Error('must not be empty');
  const path = decodeURIComponent(last.pathname.slice(1));
  const isNumber = DATABASE_NUMBER.test(path);
  // A plus sign of a password is one, as before the host: only in forms it stands for a blank.
  const query = new URLSearchParams(last.search.replaceAll('+', '%2B'));
  return {
    nodes: urls.map(nodeOf),
    isTls: first.protocol === 'rediss:',
    username: decodeURIComponent(first.username) || undefined,
    password: decodeURIComponent(first.password) || undefined,
    database: Number(query.get('db') ?? (isNumber ? path : 0)),
    masterName: path === '' || isNumber ? undefined : path,
    sentinelPassword: query.get('sentinelPassword') ?? undefined,
  };
}

/** Only the first node needs its scheme. */
function nodeUrl(text: string, index: number): URL {
  const url = URL.parse(index === 0 || text.includes('://') ? text : `redis://${text}`);
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '')
    throw new Error('must be a URL that starts with redis:// or rediss://');
  if (!DATABASE_NUMBER.test(url.searchParams.get('db') ?? '0'))
    throw new Error('must have a number as db in its query');
  requireDecodable(url);
  return url;
}

function nodeOf(url: URL): { host: string; port: number } {
  return {
    // The brackets of an IPv6 address belong to the URL, not to the address.
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? REDIS_PORT : Number(url.port),
  };
}

/** Throws unless the credentials and the path of a URL are percent-encoded properly. */
function requireDecodable({ username, password, pathname }: URL): void {
  try {
    decodeURIComponent(username + password + pathname);
  } catch {
    throw new Error(PERCENT_ENCODING);
  }
}
