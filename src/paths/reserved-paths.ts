/** Paths that belong to the management interface: they and all below them are never proxied. */
const RESERVED_PATHS = ['/consumer-api-key', '/rate-limit', '/api-keys', '/tollgate'] as const;

/** Where self-service is unless a setting says otherwise: the one path below a reserved prefix that is not for administrators. */
export const SELF_SERVICE_PATH = '/tollgate/self';

/** Whether `path` (no query) is reserved for the management interface. */
export function isReserved(path: string): boolean {
  return RESERVED_PATHS.some((prefix) => isAtOrBelow(path, prefix));
}

/** Whether `path` (no query) is the prefix or below it, literally and with case. */
export function isAtOrBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/');
}

/**
 * The management path that `path` (no query) was probably meant to be: a reserved prefix in the other number or another case, or the path of a key
 * below the plural. Undefined where it resembles none.
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
