/** Paths that belong to the management interface: they and all below them are never proxied. */
const RESERVED_PATHS = ['/consumer-api-key', '/rate-limit', '/api-keys', '/tollgate'] as const;

/** Whether `path` (no query) is reserved: equal to a prefix or below it, literally and with case. */
export function isReserved(path: string): boolean {
  return RESERVED_PATHS.some((prefix) => path.startsWith(prefix) && isBoundary(path, prefix.length));
}

function isBoundary(path: string, index: number): boolean {
  return path.length === index || path[index] === '/';
}
