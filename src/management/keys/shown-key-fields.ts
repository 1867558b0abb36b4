import { type ConsumerKey, type KeyRotation, SELF_SERVICE_ACTIONS } from '../../keys/consumer-key.ts';
import { isoSeconds, isoSecondsOrNull } from '../../platform/timestamps.ts';
import { INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { presentOverrides, SHOWN_OVERRIDES } from './limit-override-fields.ts';

/** The fields that the list and the detail show in addition to those of the spec. */
export const SHOWN_KEY_FIELDS = {
  enabled: { type: 'boolean' },
  expiresAt: orNull(INSTANT),
  rateLimitId: { ...orNull(TEXT), description: 'Null: the default plan applies.' },
  externalId: orNull(TEXT),
  tags: listOf(TEXT),
  metadata: orNull({ type: 'object', additionalProperties: true }),
  overrides: SHOWN_OVERRIDES,
  allowedIps: { ...orNull(listOf(TEXT)), description: 'Null: the key may be used from any address.' },
  allowedOrigins: { ...orNull(listOf(TEXT)), description: 'Null: the key may be used by any web page.' },
  selfService: {
    ...listOf({ type: 'string', enum: SELF_SERVICE_ACTIONS }),
    description: 'What the consumer may do with the key itself.',
  },
  managedBy: {
    ...orNull(TEXT),
    description: 'The owner of the configuration that manages the key; null: it was made through the API.',
  },
  rotation: {
    ...orNull(
      named(
        'KeyRotation',
        objectOf({ startedAt: INSTANT, previousValidUntil: INSTANT, previousLastUsedAt: orNull(INSTANT) }),
      ),
    ),
    description: 'Null: the key has one secret. previousLastUsedAt is null until the previous one is used.',
  },
  secretHint: {
    ...orNull(TEXT),
    description: 'The first and last characters of the secret; null where they are not known.',
  },
  lastUsedAt: { ...orNull(INSTANT), description: 'Null: the key was never used.' },
} as const;

export function presentKeyFields(key: ConsumerKey): object {
  return {
    enabled: key.enabled,
    expiresAt: isoSecondsOrNull(key.expiresAtMs),
    rateLimitId: key.planId,
    externalId: key.externalId,
    tags: key.tags,
    metadata: key.metadata,
    overrides: presentOverrides(key.overrides),
    allowedIps: key.allowedIps,
    allowedOrigins: key.allowedOrigins,
    selfService: key.selfService,
    managedBy: key.managedBy,
    rotation: key.rotation && presentRotation(key.rotation),
    secretHint: key.secretHint,
    lastUsedAt: isoSecondsOrNull(key.lastUsedAtMs),
  };
}

/** The value of `SHOWN_KEY_FIELDS.rotation`. */
export function presentRotation({
  startedAtMs,
  previousValidUntilMs,
  previousLastUsedAtMs,
}: KeyRotation): object {
  return {
    startedAt: isoSeconds(startedAtMs),
    previousValidUntil: isoSeconds(previousValidUntilMs),
    previousLastUsedAt: isoSecondsOrNull(previousLastUsedAtMs),
  };
}

/** The fields of a list item and of the response to an edit. */
export const KEY_ITEM_FIELDS = {
  consumerApiKeyId: TEXT,
  name: TEXT,
  createdAt: INSTANT,
  lastUpdated: INSTANT,
  ...SHOWN_KEY_FIELDS,
} as const;

export const KEY_ITEM = named('ConsumerKey', objectOf(KEY_ITEM_FIELDS));

export function presentKeyItem(key: ConsumerKey): object {
  return {
    consumerApiKeyId: key.id,
    name: key.name,
    createdAt: isoSeconds(key.createdAtMs),
    lastUpdated: isoSeconds(key.updatedAtMs),
    ...presentKeyFields(key),
  };
}
