import {
  type AuditedChange,
  auditedInstant,
  changedFields,
  type RecordChange,
} from '../audit/audit-entry.ts';
import type { Scope } from '../permissions/scopes.ts';
import { idTest } from '../platform/id-maker.ts';

/** The record of an admin token. It never contains the secret. */
export interface AdminToken {
  /** `adm_` and a ULID; newer tokens sort after older ones. */
  readonly id: string;
  /** 1 … 255 characters, trimmed, no control characters. Need not be unique. */
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** For the token, only keys with all of these tags exist; empty: all keys do. */
  readonly onlyTags: readonly string[];
  /** Addresses and networks that the token may be used from; null = any. */
  readonly allowedIps: readonly string[] | null;
  /** From this instant on the token is rejected; null = never. Milliseconds since 1970. */
  readonly expiresAtMs: number | null;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Grows by one with every change. */
  readonly version: number;
  /** To the minute; null = never used. Milliseconds since 1970. */
  readonly lastUsedAtMs: number | null;
  /** `tga_Ab3d…9xYz`. */
  readonly secretHint: string;
  /** Until when the previous secret is valid as well; null = the token has only one. Milliseconds since 1970. */
  readonly previousValidUntilMs: number | null;
}

/** The prefix of admin tokens' secrets, before a `_`. */
export const ADMIN_TOKEN_PREFIX = 'tga';

/** Whether a text has the form of an admin token's id. */
export const isAdminTokenId = idTest('adm_');

/** A change of a token. */
export function auditedToken(...[before, after]: RecordChange<AdminToken>): AuditedChange {
  const { id, name, onlyTags } = after ?? before;
  const changes = changedFields(before && fieldsOf(before), after && fieldsOf(after));
  return { target: { type: 'token', id, name, tags: onlyTags }, changes };
}

/** The fields of a token in the audit log: all that an administrator sets, by their names in the API. */
function fieldsOf(token: AdminToken): Readonly<Record<string, unknown>> {
  const { name, scopes, onlyTags, allowedIps, expiresAtMs, previousValidUntilMs } = token;
  return {
    name,
    scopes,
    onlyTags,
    allowedIps,
    expiresAt: auditedInstant(expiresAtMs),
    previousValidUntil: auditedInstant(previousValidUntilMs),
  };
}
