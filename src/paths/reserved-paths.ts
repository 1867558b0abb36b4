/** Paths of the management interface: they and all paths below them are never proxied. */
const RESERVED_PATHS = ['/consumer-api-key', '/rate-limit', '/api-keys', '/tollgate'] as const;

/** The default path of self-service: the only path below a reserved prefix that is not for administrators. */
export const SELF_SERVICE_PATH = '/tollgate/self';

/** The path at which the port for other gateways and services verifies secrets. It is like any other elsewhere. */
export const VERIFY_PATH = '/verify';
/** Where the management interface does the same, for the console and the command. */
export const MANAGED_VERIFY_PATH = '/api-keys/verify';

/** Whether `path` (no query) is reserved for the management interface. */
export function isReserved(path: string): boolean {
  return RESERVED_PATHS.some((prefix) => isAtOrBelow(path, prefix));
}

/** Whether `path` (no query) is the prefix or below it. The comparison is literal and case-sensitive. */
export function isAtOrBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}

/**
 * The management path that `path` (no query) was probably meant to be: a reserved prefix in singular or plural or another case, or the path
 * of a key below the plural. Undefined if it resembles none.
 */
export function resembledManagementPath(path: string): string | undefined {
  if (path.startsWith('/api-keys/key_')) return '/consumer-api-key/{consumerApiKeyId}';
  if (isReserved(path)) return undefined;
  const [, first = ''] = path.split('/', 2);
  const name = inSingular(`/${first.toLowerCase()}`);
  return RESERVED_PATHS.find((prefix) => inSingular(prefix) === name);
}

function inSingular(prefix: string): string {
  return prefix.replace(/s$/, '');
}
