import type { AuditAction } from '../audit/audit-entry.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import type { AdminToken } from './admin-token.ts';

/** The stored form of a token's secret. */
export interface StoredTokenSecret {
  /** The token is found by this HMAC of its secret's digest, or of the secret itself if the digest is not kept. */
  readonly lookup: Buffer;
  /** The encrypted SHA-256 digest of the secret, to compute `lookup` for another encryption key; null = not kept. */
  readonly sealedDigest: Buffer | null;
}

/** A token with its secrets. */
export interface StoredAdminToken {
  readonly token: AdminToken;
  readonly present: StoredTokenSecret;
  /** The previous secret; null = there is none. */
  readonly previous: StoredTokenSecret | null;
}

/** A change to an existing token. */
export interface AdminTokenEdit {
  readonly action: Extract<AuditAction, 'token.update' | 'token.rotate'>;
  /** Returns the changed token; `updatedAtMs` and `version` are set afterwards. If it throws, nothing is changed. */
  readonly edit: (present: StoredAdminToken) => StoredAdminToken;
}

/** Selects the tokens of a page. */
export interface AdminTokenPage {
  /** Only tokens that are limited to all of these tags; empty: all tokens. */
  readonly onlyTags: readonly string[];
  readonly limit: number;
  /** Only tokens older than this one. */
  readonly beforeId?: string;
}

/**
 * Stores admin tokens. If a change is limited to tags, only tokens that are limited to these tags as well exist for it. Each change and its
 * entry in the audit log are written in one transaction. Every method rejects with `StoreUnavailable` if the store does not respond.
 */
export interface AdminTokenRepository {
  insert(token: StoredAdminToken, change: ChangeContext): Promise<void>;
  /** Newest first. */
  list(page: AdminTokenPage): Promise<readonly AdminToken[]>;
  /** The number of tokens that are limited to all of these tags; without tags, of all tokens. */
  count(onlyTags: readonly string[]): Promise<number>;
  find(tokenId: string): Promise<AdminToken | undefined>;
  /** The token whose secret has one of the look-up values, or whose previous secret has one and is valid at `nowMs`. */
  findByLookup(lookups: readonly Buffer[], nowMs: number): Promise<StoredAdminToken | undefined>;
  /** Undefined if there is no such token. Rejects with `VersionMismatch` if its state is not the expected one. */
  update(tokenId: string, edit: AdminTokenEdit, change: ChangeContext): Promise<AdminToken | undefined>;
  /** False if there was no such token. Rejects with `VersionMismatch` if its state is not the expected one. */
  delete(tokenId: string, change: ChangeContext): Promise<boolean>;
  /** Stores that a token was used. This is not a change for the audit log. */
  noteUse(tokenId: string, atMs: number): Promise<void>;
}
