/** Fields that end at each hop, in both directions (RFC 9110 section 7.6.1, RFC 7540 section 3.2.1). Lower case. */
export const HOP_BY_HOP_FIELDS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
] as const;

/** Fields that `Connection` can't name away: who asks, where it goes, and where the message ends. */
const PROTECTED: ReadonlySet<string> = new Set([
  'x-api-key',
  'authorization',
  'host',
  'content-length',
  'transfer-encoding',
]);

/** What almost every `Connection` field says; these options name no field. */
const PLAIN: ReadonlySet<string> = new Set(['keep-alive', 'close', 'upgrade', '']);

/**
 * The fields, in lower case, that the `Connection` field of a message ends at this hop, besides those that always do. Undefined when
 * there are none, which is the rule.
 */
export function fieldsNamedBy(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  const named = connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
    .filter((option) => !PLAIN.has(option) && !PROTECTED.has(option));
  return named.length === 0 ? undefined : new Set(named);
}
