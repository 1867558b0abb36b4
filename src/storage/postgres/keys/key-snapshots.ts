import { type Selectable, sql } from 'kysely';
import { StoreUnavailable } from '../../../errors.ts';
import type { KeyOwner, KeySnapshot, PlanSnapshot, PreviousSecret } from '../../../keys/consumer-key.ts';
import type { KeyRestrictions } from '../../../keys/key-restrictions.ts';
import { OriginList } from '../../../keys/origin-list.ts';
import type { AdditionalLimit, PlanCost } from '../../../plans/plan.ts';
import type { PlanLimitsCache } from '../../../plans/plan-limits-cache.ts';
import { AddressList } from '../../../platform/address-list.ts';
import type { RecordsDatabase } from '../records-database.ts';
import type { ConsumerKeysTable, RotationColumns } from './consumer-keys-table.ts';

/** The row of a snapshot: a key's columns, joined with the plan that applies (all null when none does). */
export interface SnapshotRow
  extends Pick<
      Selectable<ConsumerKeysTable>,
      | 'id'
      | 'enabled'
      | 'expires_at'
      | 'plan_id'
      | 'version'
      | 'overrides'
      | 'allowed_ips'
      | 'allowed_origins'
      | 'secret_version'
    >,
    Pick<RotationColumns, 'previous_valid_until'> {
  readonly previous_version: number | null;
  readonly applied_plan_id: string | null;
  readonly applied_limit: number | null;
  readonly applied_period: string | null;
  readonly applied_version: number | null;
  readonly applied_additional_limits: readonly AdditionalLimit[] | null;
  readonly applied_costs: readonly PlanCost[] | null;
  readonly owner_name?: string;
  readonly owner_external_id?: string | null;
  readonly owner_tags?: readonly string[];
  readonly owner_metadata?: Readonly<Record<string, unknown>> | null;
}

/** The columns of a snapshot with its `owner`. */
export const OWNER_COLUMNS = [
  'consumer_keys.name as owner_name',
  'consumer_keys.external_id as owner_external_id',
  'consumer_keys.tags as owner_tags',
  'consumer_keys.metadata as owner_metadata',
] as const;

/** How snapshots are made. */
export interface SnapshotOptions {
  /** The plan of keys that are bound to none; null = unlimited. */
  readonly defaultPlanId: string | null;
  readonly plans: PlanLimitsCache;
}

/** Selects keys with their previous secret and with the plan that applies: the one they are bound to, else `defaultPlanId`. */
export function selectSnapshots(db: RecordsDatabase, defaultPlanId: string | null) {
  return db
    .selectFrom('consumer_keys')
    .leftJoin('plans', (join) =>
      join.on((on) =>
        on(
          'plans.id',
          '=',
          on.fn.coalesce('consumer_keys.plan_id', on.cast<string | null>(on.val(defaultPlanId), 'text')),
        ),
      ),
    )
    .leftJoin('previous_secrets', 'previous_secrets.key_id', 'consumer_keys.id')
    .select([
      'consumer_keys.id',
      'consumer_keys.enabled',
      'consumer_keys.expires_at',
      'consumer_keys.plan_id',
      'consumer_keys.version',
      'consumer_keys.overrides',
      'consumer_keys.allowed_ips',
      'consumer_keys.allowed_origins',
      'consumer_keys.secret_version',
      'previous_secrets.version as previous_version',
      'previous_secrets.valid_until as previous_valid_until',
      'plans.id as applied_plan_id',
      'plans.limit as applied_limit',
      'plans.period as applied_period',
      'plans.version as applied_version',
      'plans.additional_limits as applied_additional_limits',
      'plans.costs as applied_costs',
    ]);
}

/**
 * The query of the snapshots whose keys have, or had before, a secret with one of these look-up values. It is built once, because to build it
 * takes longer than to run it.
 */
export function lookUpQuery(snapshots: ReturnType<typeof selectSnapshots>) {
  const lookups: readonly Buffer[] = [];
  const oneOfThem = sql<Buffer>`any(${lookups}::bytea[])`;
  const query = snapshots
    .select(['consumer_keys.lookup as found_lookup', 'consumer_keys.secret_version as found_version'])
    .where('consumer_keys.lookup', '=', oneOfThem)
    .unionAll(
      snapshots
        .select((select) => [
          select.ref('previous_secrets.lookup').$notNull().as('found_lookup'),
          select.ref('previous_secrets.version').$notNull().as('found_version'),
        ])
        .where('previous_secrets.lookup', '=', oneOfThem),
    )
    .compile();
  return (values: readonly Buffer[]): typeof query => ({
    ...query,
    parameters: query.parameters.map((parameter) => (parameter === lookups ? values : parameter)),
  });
}

/**
 * The snapshot that a row holds. Throws `StoreUnavailable` when a default plan is set but does not exist: a wrong setting must not make
 * keys unlimited, and the failure ends as soon as the plan is created.
 */
export function snapshotOfRow(row: SnapshotRow, { defaultPlanId, plans }: SnapshotOptions): KeySnapshot {
  if (row.applied_plan_id === null && defaultPlanId !== null) {
    throw new StoreUnavailable(
      'postgres',
      new Error(
        `The default plan "${defaultPlanId}" does not exist: make it, or set DEFAULT_PLAN_ID to one that does.`,
      ),
    );
  }
  return {
    keyId: row.id,
    version: snapshotVersion(row.version, row.applied_version),
    enabled: row.enabled,
    expiresAtMs: row.expires_at?.getTime() ?? null,
    plan: planOf(row, plans),
    restrictions: restrictionsOf(row),
    secretVersion: row.secret_version,
    previousSecret: previousSecretOf(row),
    ...ownerOf(row),
  };
}

function ownerOf(row: SnapshotRow): { readonly owner?: KeyOwner } {
  const { owner_name: name, owner_external_id: externalId = null } = row;
  const { owner_tags: tags = [], owner_metadata: metadata = null } = row;
  return name === undefined ? {} : { owner: { name, externalId, tags, metadata } };
}

function previousSecretOf(row: SnapshotRow): PreviousSecret | null {
  const { previous_version: version, previous_valid_until: validUntil } = row;
  return version === null || validUntil === null ? null : { version, validUntilMs: validUntil.getTime() };
}

/** `KeySnapshot.version`, from the key's version and that of the plan that applies; null for no plan. */
export function snapshotVersion(keyVersion: number, planVersion: number | null): string {
  return `${keyVersion}.${planVersion ?? 0}`;
}

function planOf(row: SnapshotRow, plans: PlanLimitsCache): PlanSnapshot | null {
  const { applied_plan_id: id, applied_limit: limit, applied_period: period, overrides } = row;
  if (id === null || limit === null || period === null) return null;
  const additionalLimits = row.applied_additional_limits ?? [];
  const costs = row.applied_costs ?? [];
  return { id, limits: plans.limitsOf({ id, limit, period, additionalLimits, costs }, overrides) };
}

/** The lists are compiled once for each snapshot. */
function restrictionsOf({
  allowed_ips: addresses,
  allowed_origins: origins,
}: SnapshotRow): KeyRestrictions | null {
  if (addresses === null && origins === null) return null;
  return {
    addresses: addresses && new AddressList(addresses),
    origins: origins && new OriginList(origins),
  };
}
