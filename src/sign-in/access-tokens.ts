import { jwtVerify } from 'jose';
import { TollgateError } from '../errors.ts';
import type { Principal } from '../permissions/principal.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import { LAST_INSTANT_MS } from '../platform/timestamps.ts';
import { claimValues, emailOf, isTrusted, textClaim } from './claims.ts';
import { CLOCK_TOLERANCE_S, type IdentityProvider, SIGNATURE_ALGORITHMS } from './identity-provider.ts';
import { providerFailure } from './provider-failure.ts';
import { grantOf, type ScopesMap } from './scopes-map.ts';

interface AccessTokensOptions {
  readonly provider: Pick<IdentityProvider, 'signingKeys'>;
  readonly audience: string;
  readonly claim: string;
  readonly map: ScopesMap;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Access tokens of programs: JWTs of the identity provider (RFC 9068). They are verified with its cached keys alone. */
export class AccessTokens {
  readonly #options: AccessTokensOptions;

  constructor(options: AccessTokensOptions) {
    this.#options = options;
  }

  /** The program with a valid token to which the map grants something; else undefined. Throws `provider_unavailable` without keys. */
  async authenticate(token: string): Promise<Principal | undefined> {
    const claims = await this.#verified(token);
    if (claims === undefined) return undefined;
    const { claim, map } = this.#options;
    const values = isTrusted(claims, claim) ? (claimValues(claims, claim) ?? []) : [];
    const grant = grantOf(map, values);
    const { sub: subject, exp, client_id: clientId } = claims;
    // RFC 9068, section 2.2: each of them must be there.
    if (
      grant === undefined ||
      typeof subject !== 'string' ||
      typeof clientId !== 'string' ||
      exp === undefined
    )
      return undefined;
    if (!/^[\x21-\x7e]{1,255}$/.test(subject) || !/^[\x20-\x7e]{1,255}$/.test(clientId)) return undefined;
    return {
      type: 'program',
      // No id of a record begins like this. Several clients may act for one subject, which has no space.
      id: `program:${clientId} ${subject}`,
      name: textClaim(claims, 'client_id') ?? subject,
      identity: { subject, email: emailOf(claims) },
      scopes: new Set(grant.scopes),
      onlyTags: grant.onlyTags,
      allowedIps: null,
      expiresAtMs: Math.min(exp * 1000, LAST_INSTANT_MS),
      version: null,
    };
  }

  async #verified(token: string) {
    const { provider, audience, clock, log } = this.#options;
    try {
      const { keys, issuer } = await provider.signingKeys();
      const { payload } = await jwtVerify(token, keys, {
        ...{ issuer, audience, algorithms: SIGNATURE_ALGORITHMS, typ: 'at+jwt' },
        ...{ requiredClaims: ['exp', 'iat', 'sub', 'client_id'], clockTolerance: CLOCK_TOLERANCE_S },
        currentDate: new Date(clock.nowMs()),
      });
      return payload;
    } catch (error) {
      const { reason, detail } = providerFailure(error);
      log.debug({ event: 'access_token', reason, detail }, 'an access token was rejected');
      if (reason === 'provider_unavailable')
        throw new TollgateError(
          'provider_unavailable',
          'The keys of the identity provider could not be fetched. Try again shortly.',
        );
      return undefined;
    }
  }
}
