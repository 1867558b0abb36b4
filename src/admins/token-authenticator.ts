import { StoreUnavailable, TollgateError } from '../errors.ts';
import type { Principal } from '../permissions/principal.ts';
import { AddressList } from '../platform/address-list.ts';
import type { Clock } from '../platform/clock.ts';
import { ConcurrencyLimit } from '../platform/concurrency/concurrency-limit.ts';
import type { Logger } from '../platform/logger.ts';
import { digestOfSecret } from '../secrets/secret-digest.ts';
import { isWellFormedSecret } from '../secrets/secret-format.ts';
import type { SecretVault } from '../secrets/secret-vault.ts';
import type { AdminToken } from './admin-token.ts';
import type { AdminTokenRepository } from './admin-token-repository.ts';

/** What `TokenAuthenticator` is built from. */
export interface TokenAuthenticatorOptions {
  readonly repository: Pick<AdminTokenRepository, 'findByLookup' | 'noteUse'>;
  readonly vault: Pick<SecretVault, 'lookups' | 'digestLookups'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Most look-ups: a flood of guesses must take neither all connections to the store nor all places in the queue. A group is a client. */
const LOOK_UPS = {
  maxRunning: 4,
  maxWaiting: 4096,
  maxWaitingPerGroup: 256,
  overloaded: () =>
    new TollgateError('overloaded', 'Too many admin tokens wait to be looked up. Try again shortly.'),
};
/** The precision of `lastUsedAt`. Milliseconds. */
const USE_NOTED_EVERY_MS = 60_000;

/**
 * Finds the admin token of a secret. Nothing is cached, so that a deletion, a change or a rotation applies from the next request on, on
 * every replica.
 */
export class TokenAuthenticator {
  readonly #options: TokenAuthenticatorOptions;
  readonly #lookUps = new ConcurrencyLimit(LOOK_UPS);

  constructor(options: TokenAuthenticatorOptions) {
    this.#options = options;
  }

  /**
   * Undefined if no valid token has the secret. `client` names the client that presents it; clients take turns. Rejects with
   * `StoreUnavailable`, or with `overloaded` if too many look-ups wait.
   */
  async authenticate(secret: string, client: string): Promise<Principal | undefined> {
    // A text that can't be a secret causes no query.
    if (!isWellFormedSecret(secret)) return undefined;
    const { repository, vault, clock } = this.#options;
    const nowMs = clock.nowMs();
    const lookups = [...vault.digestLookups(digestOfSecret(secret)), ...vault.lookups(secret)];
    const found = await this.#lookUps.run(() => repository.findByLookup(lookups, nowMs), client);
    if (found === undefined) return undefined;
    const { token, present } = found;
    if (token.expiresAtMs !== null && token.expiresAtMs <= nowMs) return undefined;
    await this.#noteUse(token, nowMs);
    const isPrevious = !lookups.some((lookup) => lookup.equals(present.lookup));
    return principalOf(token, isPrevious ? token.previousValidUntilMs : null);
  }

  /** Only logs if the store is unavailable or read-only: the request is already authenticated. */
  async #noteUse({ id, lastUsedAtMs }: AdminToken, nowMs: number): Promise<void> {
    if (lastUsedAtMs !== null && nowMs - lastUsedAtMs < USE_NOTED_EVERY_MS) return;
    try {
      await this.#options.repository.noteUse(id, nowMs);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#options.log.warn(
        { err: error, adminTokenId: id },
        'the use of an admin token could not be noted',
      );
    }
  }
}

/** The error for a principal that may not make requests from an address; undefined if it may. */
export function addressFault({ allowedIps }: Principal, address: string): TollgateError | undefined {
  if (allowedIps === null || new AddressList(allowedIps).includes(address)) return undefined;
  return new TollgateError('address_not_allowed', 'The admin token may not be used from this address.');
}

/** `secretEndsAtMs`: when the secret ends that was presented, although the token does not; null = never. Milliseconds since 1970. */
function principalOf(token: AdminToken, secretEndsAtMs: number | null): Principal {
  const { id, name, scopes, onlyTags, allowedIps, expiresAtMs, version } = token;
  const ends = [expiresAtMs, secretEndsAtMs].filter((atMs) => atMs !== null);
  return {
    type: 'token',
    id,
    name,
    scopes: new Set(scopes),
    onlyTags,
    allowedIps,
    expiresAtMs: ends.length === 0 ? null : Math.min(...ends),
    version,
  };
}
