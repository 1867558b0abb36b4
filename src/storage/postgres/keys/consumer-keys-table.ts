import { type ColumnType, type Generated, type Selectable, sql } from 'kysely';
import type { ConsumerKey, KeyRotation, SelfServiceAction } from '../../../keys/consumer-key.ts';
import type { SecretOrigin } from '../../../keys/secrets/stored-secret.ts';
import type { LimitOverrides } from '../../../limiter/limit-overrides.ts';

/** The table `consumer_keys`. */
export interface ConsumerKeysTable {
  readonly id: string;
  readonly name: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly enabled: boolean;
  readonly expires_at: Date | null;
  readonly lookup: Uint8Array;
  readonly sealed_secret: Uint8Array | null;
  readonly plan_id: string | null;
  readonly version: Generated<number>;
  readonly secret_version: Generated<number>;
  readonly secret_origin: Generated<SecretOrigin>;
  readonly secret_hint: string | null;
  readonly digest_lookup: Uint8Array;
  readonly sealed_digest: Uint8Array | null;
  /** `jsonb`: read as a parsed value, written as JSON text. */
  readonly overrides: ColumnType<LimitOverrides, string | undefined, string>;
  readonly external_id: string | null;
  readonly tags: ColumnType<readonly string[], readonly string[] | undefined, readonly string[]>;
  /** `jsonb`, as above. */
  readonly metadata: ColumnType<
    Readonly<Record<string, unknown>> | null,
    string | null | undefined,
    string | null
  >;
  /** Null: any address. */
  readonly allowed_ips: readonly string[] | null;
  /** Null: any page. */
  readonly allowed_origins: readonly string[] | null;
  readonly self_service: ColumnType<
    readonly SelfServiceAction[],
    readonly SelfServiceAction[] | undefined,
    readonly SelfServiceAction[]
  >;
  readonly managed_by: string | null;
  readonly managed_digest: Uint8Array | null;
}

/** The table `previous_secrets`. */
export interface PreviousSecretsTable {
  readonly key_id: string;
  readonly version: number;
  readonly origin: SecretOrigin;
  readonly hint: string | null;
  readonly lookup: Uint8Array;
  readonly digest_lookup: Uint8Array;
  readonly sealed_secret: Uint8Array | null;
  readonly sealed_digest: Uint8Array | null;
  readonly rotated_at: Date;
  readonly valid_until: Date;
  readonly last_used_at: Date | null;
}

/** What `ROTATION_COLUMNS` selects; all null for a key without a previous secret. */
export interface RotationColumns {
  readonly previous_rotated_at: Date | null;
  readonly previous_valid_until: Date | null;
  readonly previous_last_used_at: Date | null;
}

/** The columns of which a `KeyRotation` is made, of `previous_secrets` joined to the key. */
export const ROTATION_COLUMNS = [
  'previous_secrets.rotated_at as previous_rotated_at',
  'previous_secrets.valid_until as previous_valid_until',
  'previous_secrets.last_used_at as previous_last_used_at',
] as const;

/** A subquery and not a join, so that the same columns can be selected with a row lock. */
const LAST_USED_AT = sql<Date | null>`(
  SELECT last_used_at FROM usage_totals WHERE usage_totals.key_id = consumer_keys.id
)`.as('last_used_at');

/** The columns of which a `ConsumerKey` is made, with the previous secret joined. */
export const KEY_COLUMNS = [
  'consumer_keys.id',
  'consumer_keys.name',
  'consumer_keys.created_at',
  'consumer_keys.updated_at',
  'consumer_keys.version',
  'consumer_keys.enabled',
  'consumer_keys.expires_at',
  'consumer_keys.plan_id',
  'consumer_keys.overrides',
  'consumer_keys.external_id',
  'consumer_keys.tags',
  'consumer_keys.metadata',
  'consumer_keys.allowed_ips',
  'consumer_keys.allowed_origins',
  'consumer_keys.self_service',
  'consumer_keys.managed_by',
  'consumer_keys.secret_hint',
  LAST_USED_AT,
  ...ROTATION_COLUMNS,
] as const;

/** The key that a row holds. */
export function keyOfRow(
  row: Omit<Selectable<ConsumerKeysTable>, UnreadColumn> &
    RotationColumns & { readonly last_used_at: Date | null },
): ConsumerKey {
  return {
    id: row.id,
    name: row.name,
    createdAtMs: row.created_at.getTime(),
    updatedAtMs: row.updated_at.getTime(),
    version: row.version,
    enabled: row.enabled,
    expiresAtMs: row.expires_at?.getTime() ?? null,
    planId: row.plan_id,
    externalId: row.external_id,
    tags: row.tags,
    metadata: row.metadata,
    overrides: row.overrides,
    allowedIps: row.allowed_ips,
    allowedOrigins: row.allowed_origins,
    selfService: row.self_service,
    managedBy: row.managed_by,
    secretHint: row.secret_hint,
    rotation: rotationOf(row),
    lastUsedAtMs: row.last_used_at?.getTime() ?? null,
  };
}

/** Columns that `ConsumerKey` does not need. */
type UnreadColumn =
  | 'lookup'
  | 'sealed_secret'
  | 'secret_version'
  | 'secret_origin'
  | 'digest_lookup'
  | 'sealed_digest'
  | 'managed_digest';

/** The rotation that a row holds; null = none. */
export function rotationOf(row: RotationColumns): KeyRotation | null {
  const { previous_rotated_at: startedAt, previous_valid_until: validUntil } = row;
  if (startedAt === null || validUntil === null) return null;
  return {
    startedAtMs: startedAt.getTime(),
    previousValidUntilMs: validUntil.getTime(),
    previousLastUsedAtMs: row.previous_last_used_at?.getTime() ?? null,
  };
}
