import {
  type AuditedChange,
  type AuditTarget,
  auditedInstant,
  changedFields,
  type RecordChange,
} from '../audit/audit-entry.ts';
import type { LimitOverrides } from '../limiter/limit-overrides.ts';
import type { ConsumerKey } from './consumer-key.ts';

/** A change of a key. */
export function auditedKey(...[before, after]: RecordChange<ConsumerKey>): AuditedChange {
  const changes = changedFields(before && fieldsOf(before), after && fieldsOf(after));
  return { target: keyTarget(after ?? before), changes };
}

/** What the audit log shows of a key: the fields that an administrator sets, by their names in the API. */
function fieldsOf(key: ConsumerKey): Readonly<Record<string, unknown>> {
  const {
    id: _,
    createdAtMs,
    updatedAtMs,
    version,
    lastUsedAtMs,
    expiresAtMs,
    planId,
    overrides,
    rotation,
    ...fields
  } = key;
  return {
    ...fields,
    expiresAt: auditedInstant(expiresAtMs),
    rateLimitId: planId,
    overrides: auditedOverrides(overrides),
    previousSecretValidUntil: rotation && auditedInstant(rotation.previousValidUntilMs),
  };
}

export function keyTarget({ id, name, tags }: Pick<ConsumerKey, 'id' | 'name' | 'tags'>): AuditTarget {
  return { type: 'key', id, name, tags };
}

/** The overrides of a key, by the names in the API. */
export function auditedOverrides(
  overrides: LimitOverrides,
): Readonly<Record<string, { readonly limit: number; readonly until: string | null }>> {
  return Object.fromEntries(
    Object.entries(overrides).map(([limitId, { limit, untilMs }]) => [
      limitId,
      { limit, until: auditedInstant(untilMs) },
    ]),
  );
}
