import type { Generated, Selectable } from 'kysely';
import type { AdminToken } from '../../../admins/admin-token.ts';
import type { StoredAdminToken } from '../../../admins/admin-token-repository.ts';
import type { Scope } from '../../../permissions/scopes.ts';

/** The table `admin_tokens`. */
export interface AdminTokensTable {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly only_tags: readonly string[];
  readonly allowed_ips: readonly string[] | null;
  readonly expires_at: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly version: Generated<number>;
  readonly last_used_at: Date | null;
  readonly secret_hint: string;
  readonly lookup: Uint8Array;
  readonly sealed_digest: Uint8Array | null;
  readonly previous_lookup: Uint8Array | null;
  readonly previous_sealed_digest: Uint8Array | null;
  readonly previous_valid_until: Date | null;
}

/** The token that a row holds. */
export function tokenOfRow(row: Selectable<AdminTokensTable>): StoredAdminToken {
  const token: AdminToken = {
    id: row.id,
    name: row.name,
    scopes: row.scopes,
    onlyTags: row.only_tags,
    allowedIps: row.allowed_ips,
    expiresAtMs: row.expires_at?.getTime() ?? null,
    createdAtMs: row.created_at.getTime(),
    updatedAtMs: row.updated_at.getTime(),
    version: row.version,
    lastUsedAtMs: row.last_used_at?.getTime() ?? null,
    secretHint: row.secret_hint,
    previousValidUntilMs: row.previous_valid_until?.getTime() ?? null,
  };
  return { token, ...secretsOfRow(row) };
}

/** The secrets that a row holds. */
export function secretsOfRow(
  row: Pick<
    Selectable<AdminTokensTable>,
    'lookup' | 'sealed_digest' | 'previous_lookup' | 'previous_sealed_digest'
  >,
): Pick<StoredAdminToken, 'present' | 'previous'> {
  const { lookup, sealed_digest: digest } = row;
  const { previous_lookup: previousLookup, previous_sealed_digest: previousDigest } = row;
  return {
    present: { lookup: Buffer.from(lookup), sealedDigest: digest && Buffer.from(digest) },
    previous: previousLookup && {
      lookup: Buffer.from(previousLookup),
      sealedDigest: previousDigest && Buffer.from(previousDigest),
    },
  };
}

/** The columns of the secrets. */
export function secretColumns({ present, previous }: Pick<StoredAdminToken, 'present' | 'previous'>) {
  return {
    lookup: present.lookup,
    sealed_digest: present.sealedDigest,
    previous_lookup: previous?.lookup ?? null,
    previous_sealed_digest: previous?.sealedDigest ?? null,
  };
}

/** The columns that a change of a token may change. */
export function changedColumns({ token, present, previous }: StoredAdminToken) {
  return {
    name: token.name,
    scopes: token.scopes,
    only_tags: token.onlyTags,
    allowed_ips: token.allowedIps,
    expires_at: dateOf(token.expiresAtMs),
    updated_at: new Date(token.updatedAtMs),
    version: token.version,
    secret_hint: token.secretHint,
    ...secretColumns({ present, previous }),
    previous_valid_until: dateOf(token.previousValidUntilMs),
  };
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
