import type { AuditAction } from '../audit/audit-entry.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import type { AdminToken } from './admin-token.ts';

/** What is stored of a token's secret. */
export interface StoredTokenSecret {
  /** HMAC of the secret's digest, or of the secret itself where the digest is not kept: what the token is found by. */
  readonly lookup: Buffer;
  /** Its SHA-256 digest, encrypted, so that the look-up can be made again under another encryption key; null: not kept. */
  readonly sealedDigest: Buffer | null;
}

/** A token with its secrets. */
export interface StoredAdminToken {
  readonly token: AdminToken;
  readonly present: StoredTokenSecret;
  /** The secret before; null = there is none. */
  readonly previous: StoredTokenSecret | null;
}

/** A change to a token that exists. */
export interface AdminTokenEdit {
  readonly action: Extract<AuditAction, 'token.update' | 'token.rotate'>;
  /** Gives the token as it is to be, but for `updatedAtMs` and `version`. What it throws undoes everything. */
  readonly edit: (present: StoredAdminToken) => StoredAdminToken;
}

/** Which tokens are listed. */
export interface AdminTokenPage {
  /** Only tokens that are limited to all of these tags; empty: all tokens. */
  readonly onlyTags: readonly string[];
  readonly limit: number;
  /** Only tokens older than this one. */
  readonly beforeId?: string;
}

/**
 * Where admin tokens are kept. For a change by someone who is limited to tags, only tokens exist that are limited to these as well. Each
 * change is in the audit log, in one transaction with its entry. Every method rejects with `StoreUnavailable` when the store does not
 * respond.
 */
export interface AdminTokenRepository {
  insert(token: StoredAdminToken, change: ChangeContext): Promise<void>;
  /** Newest first. */
  list(page: AdminTokenPage): Promise<readonly AdminToken[]>;
  /** How many there are that are limited to all of these tags; none given: all. */
  count(onlyTags: readonly string[]): Promise<number>;
  find(tokenId: string): Promise<AdminToken | undefined>;
  /** The token whose secret has one of the look-up values, or whose previous one has and is valid at `nowMs`. */
  findByLookup(lookups: readonly Buffer[], nowMs: number): Promise<StoredAdminToken | undefined>;
  /** Undefined when there is no such token. Rejects with `VersionMismatch` for one that is in another state than expected. */
  update(tokenId: string, edit: AdminTokenEdit, change: ChangeContext): Promise<AdminToken | undefined>;
  /** False when there was no such token. Rejects with `VersionMismatch` as well. */
  delete(tokenId: string, change: ChangeContext): Promise<boolean>;
  /** Notes that a token is used. No change in the sense of the audit log. */
  noteUse(tokenId: string, atMs: number): Promise<void>;
}
