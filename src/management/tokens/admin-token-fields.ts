import type { AdminToken } from '../../admins/admin-token.ts';
import type { AdminTokenFields } from '../../admins/admin-token-service.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { expandScopes, PRESETS, type Preset, SCOPES, type Scope } from '../../permissions/scopes.ts';
import type { Clock } from '../../platform/clock.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { isoSeconds, isoSecondsOrNull } from '../../platform/timestamps.ts';
import { distinct, KEY_FIELDS, readExpiry } from '../keys/key-fields.ts';
import { INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';

const GRANTABLE = [...SCOPES, ...Object.keys(PRESETS)];

/** The fields that a new token may have and that an edit may change. */
export const TOKEN_FIELDS = {
  name: KEY_FIELDS.name,
  scopes: {
    description: `must be a list of at least one of ${GRANTABLE.join(', ')}`,
    type: 'array',
    minItems: 1,
    maxItems: 50,
    items: { description: `must be one of ${GRANTABLE.join(', ')}`, type: 'string', enum: GRANTABLE },
  },
  onlyTags: {
    ...KEY_FIELDS.tags,
    description: `${KEY_FIELDS.tags.description}: for this token only keys with all of them exist`,
  },
  allowedIps: KEY_FIELDS.allowedIps,
  expiresAt: {
    ...KEY_FIELDS.expiresAt,
    description: KEY_FIELDS.expiresAt.description.replace('a key', 'a token'),
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** `TOKEN_FIELDS` as they are in a body. */
export interface WrittenTokenFields {
  readonly name?: string;
  readonly scopes?: readonly (Scope | Preset)[];
  readonly onlyTags?: readonly string[] | null;
  readonly allowedIps?: readonly string[] | null;
  readonly expiresAt?: string | null;
}

/** The fields in the body. Throws `InvalidBody`. */
export function readTokenFields(body: WrittenTokenFields, clock: Clock): Partial<AdminTokenFields> {
  const { name, scopes, onlyTags, allowedIps } = body;
  const expiresAtMs = readExpiry(body.expiresAt, clock, TOKEN_FIELDS.expiresAt.description);
  return definedFields({
    ...{ name: name?.trim(), scopes: scopes && expandScopes(scopes), onlyTags: distinct(onlyTags) },
    ...{ allowedIps, expiresAtMs },
  });
}

/** A token as the list and the detail show it. */
export const TOKEN_ITEM = named(
  'AdminToken',
  objectOf({
    adminTokenId: TEXT,
    name: TEXT,
    scopes: listOf({ type: 'string', enum: SCOPES }),
    onlyTags: { ...listOf(TEXT), description: 'Empty: all keys exist for the token.' },
    allowedIps: { ...orNull(listOf(TEXT)), description: 'Null: the token may be used from any address.' },
    expiresAt: orNull(INSTANT),
    createdAt: INSTANT,
    lastUpdated: INSTANT,
    lastUsedAt: { ...orNull(INSTANT), description: 'To the minute.' },
    secretHint: { ...TEXT, examples: ['tga_Ab3d…9xYz'] },
    rotation: {
      ...orNull(named('AdminTokenRotation', objectOf({ previousValidUntil: INSTANT }))),
      description: 'While the secret before this one is valid as well.',
    },
  }),
);

export function presentToken(token: AdminToken, nowMs: number): object {
  const { previousValidUntilMs: untilMs } = token;
  return {
    adminTokenId: token.id,
    name: token.name,
    scopes: token.scopes,
    onlyTags: token.onlyTags,
    allowedIps: token.allowedIps,
    expiresAt: isoSecondsOrNull(token.expiresAtMs),
    createdAt: isoSeconds(token.createdAtMs),
    lastUpdated: isoSeconds(token.updatedAtMs),
    lastUsedAt: isoSecondsOrNull(token.lastUsedAtMs),
    secretHint: token.secretHint,
    rotation: untilMs === null || untilMs <= nowMs ? null : { previousValidUntil: isoSeconds(untilMs) },
  };
}
