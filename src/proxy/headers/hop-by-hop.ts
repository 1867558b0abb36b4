/** Headers that end at each hop, in both directions (RFC 9110 section 7.6.1, RFC 7540 section 3.2.1). Lower case. */
export const HOP_BY_HOP_HEADERS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'proxy-authenticate',
  'proxy-authentication-info',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
] as const;

/** Headers that `Connection` can't remove: credentials, target and framing. */
const PROTECTED: ReadonlySet<string> = new Set([
  'x-api-key',
  'authorization',
  'host',
  'content-length',
  'transfer-encoding',
]);

/** Common options of `Connection` that name no header. */
const PLAIN: ReadonlySet<string> = new Set(['keep-alive', 'close', 'upgrade', '']);

/**
 * The headers, in lower case, that the `Connection` header of a message names and that therefore end at this hop. Usually undefined: it
 * names none.
 */
export function headersNamedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  const named = connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
    .filter((option) => !PLAIN.has(option) && !PROTECTED.has(option));
  return named.length === 0 ? undefined : new Set(named);
}
