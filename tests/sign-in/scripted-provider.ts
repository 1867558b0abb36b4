import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterAll, beforeAll } from '@jest/globals';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { pino } from 'pino';
import {
  type Identity,
  IdentityProvider,
  type ProviderOptions,
} from '../../src/sign-in/identity-provider.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { LONGEST_WAIT_MS } from '../support/until.ts';

export type Respond = (res: ServerResponse, req: IncomingMessage) => void;
export type Part = 'metadata' | 'keys' | 'token' | 'userinfo' | 'device';

const PATHS: Readonly<Record<string, Part>> = {
  '/.well-known/openid-configuration': 'metadata',
  '/keys': 'keys',
  '/token': 'token',
  '/userinfo': 'userinfo',
  '/device': 'device',
};
/** One that the provider has sent back to the gateway. */
export const ATTEMPT = {
  ...{ state: 's', nonce: 'n', codeVerifier: 'v'.repeat(43) },
  redirectUri: 'http://127.0.0.1/cb',
};
export const CLIENT_SECRET = 'secret: of + the client';

export const nowS = () => Math.floor(Date.now() / 1000);

export const json =
  (body: unknown, status = 200): Respond =>
  (res) =>
    void res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));

/** A provider whose responses the tests of a file choose. */
export class ScriptedProvider {
  issuer = '';
  /** Of the key that signs now; the id of the first is `k`. */
  publicKey: JWK = {};
  readonly requests: Part[] = [];
  readonly #algorithm: string;
  #privateKey: CryptoKey | undefined;
  #responses: Partial<Record<Part, Respond>> = {};

  /** Runs for the tests of the file; to be called where they are defined. */
  constructor(algorithm = 'ES256') {
    this.#algorithm = algorithm;
    const server = createServer((req, res) => {
      const part = PATHS[req.url ?? ''];
      if (part === undefined) return void res.writeHead(404).end();
      this.requests.push(part);
      this.#responses[part]?.(res, req);
    });
    beforeAll(async () => {
      this.issuer = `http://127.0.0.1:${await listenOnLoopback(server)}`;
      await this.changeKey('k');
    });
    afterAll(() => {
      server.close();
      server.closeAllConnections();
    });
  }

  /** Signs with a new key from now on. */
  async changeKey(kid: string): Promise<void> {
    const pair = await generateKeyPair(this.#algorithm, { extractable: true });
    this.#privateKey = pair.privateKey;
    this.publicKey = { ...(await exportJWK(pair.publicKey)), kid };
  }

  /** An ID token of Alice but for these claims, of which those that are undefined are missing. */
  readonly jwt = (claims: object = {}, header: object = {}): Promise<string> => {
    if (this.#privateKey === undefined) throw new Error('no key yet');
    const usual = { iss: this.issuer, aud: 'tollgate', sub: 'alice', nonce: ATTEMPT.nonce };
    const times = { iat: nowS(), exp: nowS() + 300 };
    return new SignJWT({ ...usual, name: 'Alice', groups: ['admins'], ...times, ...claims })
      .setProtectedHeader({ alg: this.#algorithm, kid: String(this.publicKey.kid), ...header })
      .sign(this.#privateKey, { crit: { x: true } });
  };

  /** What the usual provider has at its addresses, and what this one has in their place. */
  readonly respond = async (
    changed: Partial<Record<Part, Respond>>,
    metadata: object = {},
  ): Promise<void> => {
    const { issuer } = this;
    this.#responses = {
      metadata: json({
        ...{ issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` },
        ...{ jwks_uri: `${issuer}/keys`, userinfo_endpoint: `${issuer}/userinfo` },
        ...{ id_token_signing_alg_values_supported: ['ES256', 'RS256', 'HS256', 'none'], ...metadata },
      }),
      keys: json({ keys: [this.publicKey] }),
      token: json(tokens(await this.jwt())),
      userinfo: json({ sub: 'alice' }),
      ...changed,
    };
    this.requests.length = 0;
  };

  /** The gateway's side. */
  readonly client = (
    clock = new ManualClock(0),
    timeoutMs = LONGEST_WAIT_MS,
    changed: Partial<ProviderOptions> = {},
  ): IdentityProvider => {
    const who = { clientId: 'tollgate', clientSecret: CLIENT_SECRET, scopes: 'openid profile' };
    return new IdentityProvider({
      ...{ ...who, claim: 'groups', issuer: new URL(this.issuer), clock, timeoutMs },
      log: pino({ level: 'silent' }),
      ...changed,
    });
  };

  /** Signs a person in, whom the provider has sent back. */
  readonly signIn = async (timeoutMs?: number): Promise<Identity> => {
    const asked = this.client(undefined, timeoutMs);
    await asked.authorizationUrl(ATTEMPT);
    return redeem(asked);
  };
}

/** What the token endpoint responds with. */
export function tokens(idToken: string, more: object = {}): object {
  return { access_token: 'a', token_type: 'Bearer', id_token: idToken, ...more };
}

export function redeem(asked: IdentityProvider): Promise<Identity> {
  return asked.redeem(new URL('http://127.0.0.1/cb?code=c&state=s'), ATTEMPT);
}
