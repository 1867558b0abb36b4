import type { Selectable } from 'kysely';
import { StoreUnavailable } from '../../errors.ts';
import type { GrantedPlan, KeyGrant } from '../../keys/consumer-key.ts';
import { parsePeriod } from '../../limiter/period.ts';
import type { ConsumerKeysTable } from './consumer-keys-table.ts';
import type { RecordsDatabase } from './records-database.ts';

/** The row of a grant: a key's columns, joined with the plan that applies (all null when none does). */
export interface GrantRow
  extends Pick<Selectable<ConsumerKeysTable>, 'id' | 'enabled' | 'expires_at' | 'plan_id' | 'version'> {
  readonly applied_plan_id: string | null;
  readonly applied_limit: number | null;
  readonly applied_period: string | null;
  readonly applied_version: number | null;
}

/** Selects keys with the plan that applies: the key's own, else the one that `defaultPlanId` names. */
export function selectGrants(db: RecordsDatabase, defaultPlanId: string | null) {
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
    .select([
      'consumer_keys.id',
      'consumer_keys.enabled',
      'consumer_keys.expires_at',
      'consumer_keys.plan_id',
      'consumer_keys.version',
      'plans.id as applied_plan_id',
      'plans.limit as applied_limit',
      'plans.period as applied_period',
      'plans.version as applied_version',
    ]);
}

/**
 * The grant that a row holds. Throws `StoreUnavailable` when a default plan is set but there is no such plan: a fault of the settings
 * must not make keys unlimited, and it is over as soon as the plan is made.
 */
export function grantOfRow(row: GrantRow, defaultPlanId: string | null): KeyGrant {
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
    version: grantVersion(row.version, row.applied_version),
    enabled: row.enabled,
    expiresAtMs: row.expires_at?.getTime() ?? null,
    plan: planOf(row),
  };
}

/** `KeyGrant.version`, from the key's version and that of the plan that applies; null for no plan. */
export function grantVersion(keyVersion: number, planVersion: number | null): string {
  return `${keyVersion}.${planVersion ?? 0}`;
}

function planOf(row: GrantRow): GrantedPlan | null {
  const { applied_plan_id: id, applied_limit: limit, applied_period: periodText } = row;
  if (id === null || limit === null || periodText === null) {
    return null;
  }
  const period = parsePeriod(periodText);
  if (period === undefined) {
    throw new Error(`The plan "${id}" has a period that can not be read: "${periodText}".`);
  }
  return { id, limit, period, periodText };
}
