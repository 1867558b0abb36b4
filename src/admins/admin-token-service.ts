// The room `admins`: admin tokens, from the first secret to the last rotation.
// In: changes of tokens, and tokens that requests present.
// Out: a `Principal` with what it may do, or a rejection.

import type { ChangeContext } from '../audit/change-context.ts';
import { AdminTokenNotFound, MissingScope, TollgateError } from '../errors.ts';
import { missingScope, type Principal } from '../permissions/principal.ts';
import { isVisible, withTagsOf } from '../permissions/visible-records.ts';
import type { Random } from '../platform/random.ts';
import { wholeSecondUp } from '../platform/timestamps.ts';
import { digestOfSecret } from '../secrets/secret-digest.ts';
import { createSecret, secretHint } from '../secrets/secret-format.ts';
import type { SecretVault } from '../secrets/secret-vault.ts';
import { ADMIN_TOKEN_PREFIX, type AdminToken, isAdminTokenId } from './admin-token.ts';
import type {
  AdminTokenPage,
  AdminTokenRepository,
  StoredAdminToken,
  StoredTokenSecret,
} from './admin-token-repository.ts';

/** What `AdminTokenService` is built from. */
export interface AdminTokenServiceOptions {
  readonly repository: AdminTokenRepository;
  readonly vault: Pick<SecretVault, 'digestLookup' | 'sealDigest'>;
  readonly random: Random;
  readonly makeId: () => string;
}

/** The fields of a token that an administrator sets. */
export type AdminTokenFields = Pick<
  AdminToken,
  'name' | 'scopes' | 'onlyTags' | 'allowedIps' | 'expiresAtMs'
>;

/** A token and its new secret, which is never shown again. */
export interface RevealedToken {
  readonly token: AdminToken;
  readonly secret: string;
}

/**
 * Creates, shows, changes and deletes admin tokens. Principals can't grant a scope that they lack: they can neither create nor change nor
 * rotate a token with such a scope, or one for keys that they do not see. Deleting needs only the permission to write tokens. A change
 * applies from the next request on, on every replica.
 */
export class AdminTokenService {
  readonly #options: AdminTokenServiceOptions;

  constructor(options: AdminTokenServiceOptions) {
    this.#options = options;
  }

  /** The new token is also limited to the principal's tags. Throws `MissingScope`, or `InvalidBody` if these make too many. */
  async create(
    fields: AdminTokenFields,
    principal: Principal,
    change: ChangeContext,
  ): Promise<RevealedToken> {
    requireGrantable(fields, principal);
    const id = this.#options.makeId();
    const { secret, stored, hint } = this.#newSecret(id);
    const token: AdminToken = {
      ...fields,
      onlyTags: withTagsOf(fields.onlyTags, principal),
      id,
      createdAtMs: change.atMs,
      updatedAtMs: change.atMs,
      version: 1,
      lastUsedAtMs: null,
      secretHint: hint,
      previousValidUntilMs: null,
    };
    await this.#options.repository.insert({ token, present: stored, previous: null }, change);
    return { token, secret };
  }

  /** Lists only tokens that are limited to the principal's tags, newest first. */
  list(
    page: Omit<AdminTokenPage, 'onlyTags'>,
    { onlyTags }: Pick<Principal, 'onlyTags'>,
  ): Promise<readonly AdminToken[]> {
    return this.#options.repository.list({ onlyTags, ...page });
  }

  /** The number of tokens that the principal can see. */
  count({ onlyTags }: Pick<Principal, 'onlyTags'>): Promise<number> {
    return this.#options.repository.count(onlyTags);
  }

  /** Throws `AdminTokenNotFound`. */
  async get(tokenId: string, { onlyTags }: Pick<Principal, 'onlyTags'>): Promise<AdminToken> {
    // No token has an id of another form, and Postgres might reject its characters.
    const token = isAdminTokenId(tokenId) ? await this.#options.repository.find(tokenId) : undefined;
    if (token === undefined || !isVisible(token.onlyTags, onlyTags)) throw new AdminTokenNotFound();
    return token;
  }

  /** Throws `AdminTokenNotFound`, `MissingScope`, `InvalidBody` or `VersionMismatch`. */
  async update(
    tokenId: string,
    { changes, principal }: { readonly changes: Partial<AdminTokenFields>; readonly principal: Principal },
    change: ChangeContext,
  ): Promise<AdminToken> {
    const edit = (present: StoredAdminToken): StoredAdminToken => {
      const token = { ...present.token, ...changes };
      requireGrantable(present.token, principal);
      requireGrantable(token, principal);
      return { ...present, token: { ...token, onlyTags: withTagsOf(token.onlyTags, principal) } };
    };
    return this.#edit(tokenId, { action: 'token.update', edit }, change);
  }

  /**
   * Gives the token a new secret. The present one stays valid for the grace period. A token with two valid secrets can only be rotated
   * without a grace period, which ends both. Throws `AdminTokenNotFound`, `VersionMismatch`, `MissingScope` or
   * `rotation_in_progress`.
   */
  async rotate(
    tokenId: string,
    { graceMs, principal }: { readonly graceMs: number; readonly principal: Principal },
    change: ChangeContext,
  ): Promise<RevealedToken> {
    const { secret, stored, hint } = this.#newSecret(tokenId);
    const edit = ({ token, present }: StoredAdminToken): StoredAdminToken => {
      requireGrantable(token, principal);
      if (graceMs === 0) {
        return {
          token: { ...token, secretHint: hint, previousValidUntilMs: null },
          present: stored,
          previous: null,
        };
      }
      if (token.previousValidUntilMs !== null && token.previousValidUntilMs > change.atMs) {
        throw new TollgateError(
          'rotation_in_progress',
          'The admin token has two secrets already. Wait until the previous one has expired, or rotate with "graceSeconds" 0, which ends both.',
        );
      }
      const previousValidUntilMs = wholeSecondUp(change.atMs + graceMs);
      return {
        token: { ...token, secretHint: hint, previousValidUntilMs },
        present: stored,
        previous: present,
      };
    };
    return { token: await this.#edit(tokenId, { action: 'token.rotate', edit }, change), secret };
  }

  /** Throws `AdminTokenNotFound` or `VersionMismatch`. */
  async remove(tokenId: string, change: ChangeContext): Promise<void> {
    const existed = isAdminTokenId(tokenId) && (await this.#options.repository.delete(tokenId, change));
    if (!existed) throw new AdminTokenNotFound();
  }

  async #edit(
    tokenId: string,
    edit: Parameters<AdminTokenRepository['update']>[1],
    change: ChangeContext,
  ): Promise<AdminToken> {
    const token = isAdminTokenId(tokenId)
      ? await this.#options.repository.update(tokenId, edit, change)
      : undefined;
    if (token === undefined) throw new AdminTokenNotFound();
    return token;
  }

  #newSecret(tokenId: string): {
    readonly secret: string;
    readonly stored: StoredTokenSecret;
    readonly hint: string;
  } {
    const { vault, random } = this.#options;
    const secret = createSecret(ADMIN_TOKEN_PREFIX, random);
    const digest = digestOfSecret(secret);
    const stored = { lookup: vault.digestLookup(digest), sealedDigest: vault.sealDigest(tokenId, digest) };
    return { secret, stored, hint: secretHint(secret, 'generated') };
  }
}

function requireGrantable({ scopes }: Pick<AdminToken, 'scopes'>, principal: Principal): void {
  const missing = missingScope(principal, scopes);
  if (missing !== undefined) throw new MissingScope(missing);
}
