import type { ChangeContext } from '../audit/change-context.ts';
import type { Grant } from '../permissions/principal.ts';
import type { Session } from './signed-in-session.ts';

/** A session with what is kept of its secrets. */
export interface StoredSession {
  readonly session: Session;
  /** The session is found by this HMAC of the digest of its secret. */
  readonly lookup: Buffer;
  /** See `SealedSession`. */
  readonly sealed: Buffer;
}

/** Selects the sessions of a page. */
export interface SessionPage {
  /** Only sessions that are limited to all of these tags; empty: all sessions. */
  readonly onlyTags: readonly string[];
  /** Only the session with this id; undefined: all. */
  readonly id?: string | undefined;
  readonly limit: number;
  /** Only sessions older than this one. */
  readonly beforeId?: string | undefined;
  /** Only sessions that end later. Milliseconds since 1970. */
  readonly nowMs: number;
}

/** What of a session depends on the encryption key. Both are always written together: the rotation of keys looks at the seal alone. */
export type SessionSecrets = Pick<StoredSession, 'lookup' | 'sealed'>;

/** What a renewal has found out. */
export interface Renewal extends Grant, SessionSecrets {
  readonly name: string;
  readonly email: string | null;
}

/** Stores sessions. Every method rejects with `StoreUnavailable` if the store does not respond. */
export interface SessionStore {
  /** Also removes sessions that have expired. */
  insert(session: StoredSession, change: ChangeContext): Promise<void>;
  findByLookup(lookups: readonly Buffer[]): Promise<StoredSession | undefined>;
  find(sessionId: string): Promise<StoredSession | undefined>;
  /** Newest first. */
  list(page: SessionPage): Promise<readonly Session[]>;
  count(page: Omit<SessionPage, 'limit' | 'beforeId'>): Promise<number>;
  /** False if there was no such session that the change can see. */
  remove(sessionId: string, change: ChangeContext): Promise<boolean>;
  /**
   * Moves the renewal of a session on, and notes that it is used. False if another request has done so, or has ended the session: one
   * request alone renews it, because a provider may take a refresh token that is used twice for a stolen one.
   */
  claimRenewal(session: Session, renewAtMs: number, nowMs: number): Promise<boolean>;
  /** Moves the renewal of a session to another instant. False if the session has ended meanwhile. */
  postponeRenewal(sessionId: string, renewAtMs: number): Promise<boolean>;
  /** False if the session has ended meanwhile. */
  renew(sessionId: string, renewal: Renewal): Promise<boolean>;
  /** What the sessions of a person that have not expired may do. */
  grantsOf(subject: string, nowMs: number): Promise<readonly Grant[]>;
  /** For the rotation of encryption keys: at most `limit` sessions, by id, after `sessionId`. */
  after(sessionId: string | undefined, limit: number): Promise<readonly StoredSession[]>;
  /** Replaces the look-up value and what is sealed, unless the session was renewed meanwhile. */
  replace(present: StoredSession, by: SessionSecrets): Promise<boolean>;
}
