import type { Selectable } from 'kysely';
import type { Scope } from '../../../permissions/scopes.ts';
import type { StoredSession } from '../../../sign-in/session-store.ts';
import type { Session, SessionKind } from '../../../sign-in/signed-in-session.ts';

/** The table `sign_in_sessions`. */
export interface SignInSessionsTable {
  readonly id: string;
  readonly kind: SessionKind;
  readonly subject: string;
  readonly name: string;
  readonly email: string | null;
  readonly scopes: readonly Scope[];
  readonly only_tags: readonly string[];
  readonly address: string;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly renew_at: Date;
  readonly last_used_at: Date;
  readonly lookup: Uint8Array;
  readonly sealed: Uint8Array;
}

/** The session that a row holds. */
export function sessionOfRow(row: Selectable<SignInSessionsTable>): StoredSession {
  const { id, kind, subject, name, email, scopes, address } = row;
  const session: Session = {
    ...{ id, kind, subject, name, email, scopes, address },
    onlyTags: row.only_tags,
    createdAtMs: row.created_at.getTime(),
    expiresAtMs: row.expires_at.getTime(),
    renewAtMs: row.renew_at.getTime(),
    lastUsedAtMs: row.last_used_at.getTime(),
  };
  return { session, lookup: Buffer.from(row.lookup), sealed: Buffer.from(row.sealed) };
}

export function rowOfSession({ session, lookup, sealed }: StoredSession) {
  const { id, kind, subject, name, email, scopes, onlyTags, address } = session;
  return {
    ...{ id, kind, subject, name, email, scopes, only_tags: onlyTags, address, lookup, sealed },
    created_at: new Date(session.createdAtMs),
    expires_at: new Date(session.expiresAtMs),
    renew_at: new Date(session.renewAtMs),
    last_used_at: new Date(session.lastUsedAtMs),
  };
}
