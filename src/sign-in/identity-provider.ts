import { errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import * as client from 'openid-client';
import type { Clock } from '../platform/clock.ts';
import { sharedWhileRunning } from '../platform/concurrency/shared-while-running.ts';
import type { Logger } from '../platform/logger.ts';
import { boundedFetch } from './bounded-fetch.ts';
import type { Claims } from './claims.ts';
import { claimValues, mergedClaims, withoutNull } from './claims.ts';
import { ClientAuthentication } from './client-authentication.ts';
import { isWithoutDeviceGrant, providerFailure, userInfoFailure } from './provider-failure.ts';
import type { ProviderTokens } from './sealed-session.ts';
import { SignInFailure } from './sign-in-failure.ts';
import { SigningKeys } from './signing-keys.ts';

/** The algorithms of signatures that are accepted: none with a shared secret, and not `none`. */
export const SIGNATURE_ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
/** How far the clock of the provider may differ. Seconds. */
export const CLOCK_TOLERANCE_S = 30;
/** The timeout of a request to the provider, its body included. */
const TIMEOUT_MS = 5000;
/** How long the metadata of the provider is used before it is fetched again. */
const METADATA_MAX_AGE_MS = 3_600_000;
/** How long it is not fetched after a failure, if metadata from before can be used. */
const PAUSE_MS = 30_000;
/** The same if there is none: anyone may present a token, for which it is needed. */
const SHORT_PAUSE_MS = 1000;

/** What `IdentityProvider` is built from. */
export interface ProviderOptions {
  readonly issuer: URL;
  readonly clientId: string;
  /** Null: a public client. */
  readonly clientSecret: string | null;
  /** Separated by spaces. */
  readonly scopes: string;
  /** Fetched from the userinfo endpoint if the ID token does not have it. */
  readonly claim: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of a request. 5000 by default. */
  readonly timeoutMs?: number | undefined;
}

/** The secrets of one attempt to sign in. */
export interface SignInAttempt {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
  readonly redirectUri: string;
}

/** A person, as the provider says. */
export interface Identity {
  readonly subject: string;
  readonly claims: Claims;
  readonly tokens: ProviderTokens;
}

/** How a person signs in on another device (RFC 8628). */
export interface DeviceAuthorization {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly verificationUri: string;
  /** With the code in it; null if the provider has none. */
  readonly verificationUriComplete: string | null;
  readonly expiresInS: number;
  readonly intervalS: number;
}

/** The person has not signed in yet; with `slow_down` the command must ask less often (RFC 8628, section 3.5). */
export type DeviceWait = 'pending' | 'slow_down';

/** The configuration of the client, and the keys that sign. */
interface Discovered {
  readonly config: client.Configuration;
  readonly keys: SigningKeys;
}

/**
 * An OpenID provider; `openid-client` and `jose` speak the protocol. Its metadata is fetched when it is first needed and again after an
 * hour; if that fails, the metadata from before is used for half a minute. Every method throws `SignInFailure`.
 */
export class IdentityProvider {
  readonly #options: ProviderOptions;
  readonly #authentication: ClientAuthentication;
  #discovered: Discovered | undefined;
  readonly #fetch = sharedWhileRunning(() => this.#fetchMetadata());
  /** When the metadata is fetched again. Monotonic. */
  #fetchAtMs = 0;
  /** Why the last fetch failed. */
  #failure: SignInFailure | undefined;

  constructor(options: ProviderOptions) {
    this.#options = options;
    this.#authentication = new ClientAuthentication(options.clientSecret);
  }

  /** Where the browser goes. */
  async authorizationUrl({ state, nonce, codeVerifier, redirectUri }: SignInAttempt): Promise<URL> {
    const { config } = await this.#discover();
    return client.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: this.#options.scopes,
      ...{ state, nonce },
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    });
  }

  /** Redeems the code in the URL to which the provider has sent the browser. */
  async redeem(callback: URL, { state, nonce, codeVerifier }: SignInAttempt): Promise<Identity> {
    const { config, keys } = await this.#discover();
    const response = await this.#asClient(config, () =>
      client.authorizationCodeGrant(config, callback, {
        ...{ expectedState: state, expectedNonce: nonce, pkceCodeVerifier: codeVerifier },
        idTokenExpected: true,
      }),
    );
    return this.#identityIn(response, { config, keys });
  }

  /**
   * Asks again about a person: with the refresh token, or else at the userinfo endpoint. `provider_unavailable` says nothing about the
   * person; after any other failure the person has to sign in again. `keep` is called with new tokens before anything else can fail: the
   * provider may take the old ones for stolen from now on.
   */
  async renew(
    { refreshToken, accessToken }: ProviderTokens,
    subject: string,
    keep: (tokens: ProviderTokens) => Promise<unknown>,
  ): Promise<Identity> {
    const { config, keys } = await this.#discover();
    if (refreshToken === null) {
      const claims = await this.#userInfo(config, accessToken, subject);
      if (claims === undefined)
        throw new SignInFailure('provider_rejected', 'no refresh token and no userinfo');
      return { subject, claims, tokens: { refreshToken, accessToken } };
    }
    const response = await this.#asClient(config, () => client.refreshTokenGrant(config, refreshToken));
    const kept = { refreshToken: response.refresh_token ?? refreshToken, accessToken: response.access_token };
    if (kept.refreshToken !== refreshToken) await keep(kept);
    // OpenID Connect Core 12.2: the response might not have an ID token.
    if (response.id_token === undefined) {
      const claims = (await this.#userInfo(config, response.access_token, subject)) ?? {};
      return { subject, claims, tokens: kept };
    }
    const identity = await this.#identityIn(response, { config, keys });
    if (identity.subject !== subject) throw new SignInFailure('response_invalid', 'another subject');
    return { ...identity, tokens: kept };
  }

  /** Undefined if the provider does not offer it, or not to the gateway's client. */
  async startDevice(): Promise<DeviceAuthorization | undefined> {
    const { config } = await this.#discover();
    if (config.serverMetadata().device_authorization_endpoint === undefined) return undefined;
    const scope = this.#options.scopes;
    const started = await this.#asClient(config, () =>
      client.initiateDeviceAuthorization(config, { scope }).catch((error: unknown) => {
        if (isWithoutDeviceGrant(error)) return undefined;
        throw error;
      }),
    );
    if (started === undefined) return undefined;
    return {
      deviceCode: started.device_code,
      userCode: started.user_code,
      verificationUri: started.verification_uri,
      verificationUriComplete: started.verification_uri_complete ?? null,
      expiresInS: started.expires_in,
      intervalS: started.interval ?? 5,
    };
  }

  /** Asks once. */
  async redeemDevice(deviceCode: string): Promise<Identity | DeviceWait> {
    const { config, keys } = await this.#discover();
    try {
      const parameters = { device_code: deviceCode };
      const response = await this.#authentication.attempt(config.serverMetadata(), () =>
        client.genericGrantRequest(config, DEVICE_GRANT, parameters),
      );
      return await this.#identityIn(response, { config, keys });
    } catch (error) {
      const wait = error instanceof client.ResponseBodyError ? WAITS.get(error.error) : undefined;
      if (wait !== undefined) return wait;
      throw providerFailure(error);
    }
  }

  /**
   * The keys that sign access tokens, cached; an unknown key makes it look again, but not often. Metadata that is known is used at once,
   * and fetched again beside it: no program waits for a slow provider.
   */
  async signingKeys(): Promise<{ readonly keys: JWTVerifyGetKey; readonly issuer: string }> {
    // With known metadata this never rejects.
    const discovering = this.#discover();
    const { config, keys } = this.#discovered ?? (await discovering);
    return { keys: keys.find, issuer: config.serverMetadata().issuer };
  }

  /** A request to an endpoint where the client authenticates. */
  #asClient<Result>(config: client.Configuration, send: () => Promise<Result>): Promise<Result> {
    return attempt(() => this.#authentication.attempt(config.serverMetadata(), send));
  }

  async #identityIn(response: client.TokenEndpointResponse, { config, keys }: Discovered): Promise<Identity> {
    const { id_token: idToken, access_token: accessToken, refresh_token: refreshToken = null } = response;
    if (idToken === undefined) throw new SignInFailure('response_invalid', 'no ID token');
    const claims = withoutNull(await this.#verified(idToken, { config, keys }));
    const { sub: subject } = claims;
    if (typeof subject !== 'string' || !SUBJECT.test(subject))
      throw new SignInFailure('response_invalid', 'subject');
    const { claim, log } = this.#options;
    const tokens = { refreshToken, accessToken };
    // Where the token says that the address is not verified, the endpoint can't say otherwise.
    const lacksVerified = claim === 'email' && claims.email_verified === undefined;
    const isComplete = claimValues(claims, claim) !== undefined && !lacksVerified;
    if (isComplete && claims.name !== undefined) return { subject, claims, tokens };
    const more = await this.#userInfo(config, accessToken, subject).catch((error: unknown) => {
      // Only the name is missing. A response about another person is none to ignore.
      if (!isComplete || !(error instanceof SignInFailure) || error.reason === 'response_invalid')
        throw error;
      const { reason, detail } = error;
      log.warn({ event: 'userinfo', reason, detail }, 'the name of a person could not be fetched');
      return undefined;
    });
    return { subject, claims: mergedClaims(claims, more, claim), tokens };
  }

  /** `openid-client` has checked the other claims. The token came from the provider: its unknown key may be a new one. */
  async #verified(idToken: string, { config, keys }: Discovered): Promise<Claims> {
    const { issuer } = config.serverMetadata();
    const audience = this.#options.clientId;
    const options = { issuer, audience, algorithms: SIGNATURE_ALGORITHMS, clockTolerance: CLOCK_TOLERANCE_S };
    const verify = async () => (await jwtVerify(idToken, keys.find, options)).payload;
    return attempt(() =>
      verify().catch(async (error: unknown) => {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
        await keys.reload();
        return verify();
      }),
    );
  }

  /** Without claims that are null. Undefined if the provider has no such endpoint. */
  async #userInfo(
    config: client.Configuration,
    accessToken: string,
    subject: string,
  ): Promise<Claims | undefined> {
    if (config.serverMetadata().userinfo_endpoint === undefined) return undefined;
    try {
      return withoutNull(await client.fetchUserInfo(config, accessToken, subject));
    } catch (error) {
      throw userInfoFailure(error);
    }
  }

  async #discover(): Promise<Discovered> {
    const known = this.#discovered;
    if (this.#nowMs() < this.#fetchAtMs) {
      if (known !== undefined) return known;
      if (this.#failure !== undefined) throw this.#failure;
    }
    try {
      this.#discovered = await this.#fetch();
      this.#fetchAtMs = this.#nowMs() + METADATA_MAX_AGE_MS;
      return this.#discovered;
    } catch (error) {
      this.#failure = providerFailure(error);
      this.#fetchAtMs = this.#nowMs() + (known === undefined ? SHORT_PAUSE_MS : PAUSE_MS);
      if (known !== undefined) return known;
      throw this.#failure;
    }
  }

  async #fetchMetadata(): Promise<Discovered> {
    const { issuer, clientId, clock, timeoutMs = TIMEOUT_MS } = this.#options;
    const config = await client.discovery(
      issuer,
      clientId,
      { [client.clockTolerance]: CLOCK_TOLERANCE_S },
      this.#authentication.authenticate,
      {
        timeout: timeoutMs / 1000,
        [client.customFetch]: boundedFetch,
        ...(issuer.protocol === 'http:' && { execute: [client.allowInsecureRequests] }),
      },
    );
    const metadata = config.serverMetadata();
    // `openid-client` checks the other addresses before it sends a request.
    addressIn(metadata, 'authorization_endpoint', issuer);
    const jwksUri = addressIn(metadata, 'jwks_uri', issuer);
    const before = this.#discovered;
    const isSame = before?.config.serverMetadata().jwks_uri === metadata.jwks_uri;
    const keys =
      before !== undefined && isSame ? before.keys : new SigningKeys(jwksUri, { clock, timeoutMs });
    return { config, keys };
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const WAITS: ReadonlyMap<string, DeviceWait> = new Map([
  ['authorization_pending', 'pending'],
  ['slow_down', 'slow_down'],
]);
/** OpenID Connect Core 2: at most 255 ASCII characters. */
const SUBJECT = /^[\x21-\x7e]{1,255}$/;

/** An address in the metadata of a provider, at https like the provider itself. */
function addressIn(
  metadata: client.ServerMetadata,
  name: 'authorization_endpoint' | 'jwks_uri',
  issuer: URL,
): URL {
  const url = URL.parse(String(metadata[name]));
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && issuer.protocol === 'http:')) return url;
  throw new SignInFailure('response_invalid', `${name} is missing, or not at https`);
}

async function attempt<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    throw providerFailure(error);
  }
}
