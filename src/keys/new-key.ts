import type { ChangeContext } from '../audit/change-context.ts';
import { NO_OVERRIDES } from '../limiter/limit-overrides.ts';
import type { ConsumerKey } from './consumer-key.ts';
import type { NewConsumerKey } from './key-repository.ts';
import { withOwnTags } from './key-tags.ts';
import type { StoredSecret } from './secrets/stored-secret.ts';

/** The fields of a new key; missing ones are as in `NO_FIELDS`. */
export type NewKeyFields = Pick<ConsumerKey, 'name'> &
  Partial<
    Omit<
      ConsumerKey,
      'id' | 'createdAtMs' | 'updatedAtMs' | 'version' | 'secretHint' | 'rotation' | 'lastUsedAtMs'
    >
  >;

const NO_FIELDS = {
  enabled: true,
  expiresAtMs: null,
  planId: null,
  externalId: null,
  tags: [],
  metadata: null,
  overrides: NO_OVERRIDES,
  allowedIps: null,
  allowedOrigins: null,
  selfService: [],
  managedBy: null,
  rotation: null,
  lastUsedAtMs: null,
} as const satisfies Partial<ConsumerKey>;

/** A key as it is stored first. */
export function newKey(
  id: string,
  fields: NewKeyFields & { readonly secret: StoredSecret },
  change: ChangeContext,
): NewConsumerKey {
  const { secret, ...given } = fields;
  const { atMs } = change;
  const tags = withOwnTags(given.tags ?? [], change);
  return { ...NO_FIELDS, ...given, tags, ...secret, id, createdAtMs: atMs, updatedAtMs: atMs, version: 1 };
}

/** A new key without its secret. */
export function recordOf(key: NewConsumerKey): ConsumerKey {
  const { secretOrigin, lookup, digestLookup, sealedSecret, sealedDigest, ...record } = key;
  return record;
}
