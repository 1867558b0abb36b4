/** The headers of responses that the document describes, by name. */
export const HEADERS = {
  'X-Request-Id': {
    description: 'Names the request in the log: the name that the client sent, or a new one.',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9._~+/=-]{1,128}$' },
  },
  Location: {
    description: 'The path of what was made.',
    required: true,
    schema: { type: 'string', pattern: '^/' },
  },
  ETag: {
    description: 'The state of the record, for If-Match.',
    required: true,
    schema: { type: 'string', pattern: '^"[0-9a-z]+-[0-9a-z]+"$' },
  },
  'Idempotency-Replayed': {
    description: 'The response is that of the first time.',
    schema: { type: 'string', enum: ['true'] },
  },
  'Tollgate-Applies-Within': {
    description:
      'Only while Redis is away: seconds within which the change is in force on every replica. Without it, the change holds from the next request on.',
    schema: { type: 'integer', enum: [3] },
  },
  'Tollgate-Keys-Left-Out': {
    description: 'How many keys have no externalId, or one that another key has, and so are not exported.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'WWW-Authenticate': {
    required: true,
    schema: { type: 'string', pattern: '^Bearer realm="tollgate"' },
  },
  'Retry-After': {
    description: 'Seconds until the request may be sent again.',
    schema: { type: 'integer', minimum: 1 },
  },
  Vary: { schema: { type: 'string' } },
} as const;

export type HeaderName = keyof typeof HEADERS;

/** References to some of them. */
export function headersOf(names: readonly HeaderName[]): object {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
