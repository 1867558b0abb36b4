import type { AuditTarget } from '../audit/audit-entry.ts';
import type { LimitOverrides } from '../limiter/limit-overrides.ts';
import type { ConsumerKey } from './consumer-key.ts';

/** What the audit log shows of a key: all that an administrator decides, by its names in the API. */
export function auditedKey(key: ConsumerKey): Readonly<Record<string, unknown>> {
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
    expiresAt: instantOf(expiresAtMs),
    rateLimitId: planId,
    overrides: auditedOverrides(overrides),
    previousSecretValidUntil: rotation && instantOf(rotation.previousValidUntilMs),
  };
}

export function keyTarget({ id, name, tags }: ConsumerKey): AuditTarget {
  return { type: 'key', id, name, tags };
}

function auditedOverrides(overrides: LimitOverrides): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(overrides).map(([limitId, { limit, untilMs }]) => [
      limitId,
      { limit, until: instantOf(untilMs) },
    ]),
  );
}

function instantOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString().replace('.000Z', 'Z');
}
