import { type AuditedChange, changedFields, type RecordChange } from '../audit/audit-entry.ts';
import type { Grant, Principal } from '../permissions/principal.ts';
import { idTest } from '../platform/id-maker.ts';

/** How the secret of a session is presented: in the console's cookie, or by the command as a bearer token. Never the other way. */
export type SessionKind = 'browser' | 'command';

/** A person who has signed in. It never contains the secret. */
export interface Session extends Grant {
  /** `ses_` and a ULID; newer sessions sort after older ones. */
  readonly id: string;
  readonly kind: SessionKind;
  /** By which the identity provider knows the person: at most 255 visible ASCII characters. */
  readonly subject: string;
  readonly name: string;
  /** Null: the provider does not say, or has not verified it. */
  readonly email: string | null;
  /** The address that the person signed in from. */
  readonly address: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** When the gateway asks the provider again what the person may do. */
  readonly renewAtMs: number;
  /** To five minutes. */
  readonly lastUsedAtMs: number;
}

/** The prefix of the secrets of sessions, before a `_`. */
export const SESSION_PREFIX = 'tgs';

/** Whether a text has the form of a session's id. */
export const isSessionId = idTest('ses_');

/** A change of a session. */
export function auditedSession(...[before, after]: RecordChange<Session>): AuditedChange {
  const { id, name, onlyTags } = after ?? before;
  const changes = changedFields(before && fieldsOf(before), after && fieldsOf(after));
  return { target: { type: 'session', id, name, tags: onlyTags }, changes };
}

/** The fields of a session in the audit log. */
function fieldsOf({ kind, subject, email, scopes, onlyTags }: Session) {
  return { kind, subject, email, scopes, onlyTags };
}

/** Who makes the requests of a session. */
export function principalOfSession(session: Session): Principal {
  const { id, name, subject, email, scopes, onlyTags, expiresAtMs } = session;
  return {
    ...{ type: 'person', id, name, identity: { subject, email } },
    ...{ scopes: new Set(scopes), onlyTags, allowedIps: null, expiresAtMs, version: null },
  };
}
