import type { ColumnType, Generated, Selectable } from 'kysely';
import type { ConsumerKey } from '../../keys/consumer-key.ts';
import type { LimitOverrides } from '../../limiter/limit-overrides.ts';

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
  /** `jsonb`: read as what it holds, written as JSON. */
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
}

/** The columns of which a `ConsumerKey` is made. */
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
] as const;

/** The key that a row holds. */
export function keyOfRow(row: Omit<Selectable<ConsumerKeysTable>, 'lookup' | 'sealed_secret'>): ConsumerKey {
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
  };
}
