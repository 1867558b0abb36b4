import type { ServerResponse } from 'node:http';
import { constants, gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { SignJWT } from 'jose';
import { pino } from 'pino';
import { AccessTokens } from '../../src/sign-in/access-tokens.ts';
import { claimValues, emailOf, isTrusted, mergedClaims, withoutNull } from '../../src/sign-in/claims.ts';
import type { Identity, IdentityProvider } from '../../src/sign-in/identity-provider.ts';
import { grantOf, parseScopesMap } from '../../src/sign-in/scopes-map.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import {
  ATTEMPT,
  json,
  nowS,
  type Part,
  type Respond,
  redeem,
  ScriptedProvider,
  tokens,
} from './scripted-provider.ts';

const MEBIBYTE = 1_048_576;
/** Bytes that the provider could write of the response that is endless. */
let written = 0;
const provider = new ScriptedProvider();
const { jwt, respond, client, signIn } = provider;

/** As the token endpoint of a provider whose ID token has these claims. */
async function withIdToken(claims: object, header: object = {}): Promise<Identity> {
  const id_token = await jwt(claims, header);
  await respond({ token: json(tokens(id_token)) });
  return signIn();
}

const endless: Respond = (res) => {
  res.writeHead(200, { 'Content-Type': 'application/json' });
  const chunk = Buffer.alloc(65_536, 0x20);
  const write = () => {
    while (!res.destroyed && res.write(chunk)) written += chunk.length;
  };
  res.on('drain', write);
  write();
};
const slow: Respond = (res) => {
  res.writeHead(200, { 'Content-Type': 'application/json' });
  const timer = setInterval(() => res.write(' '), 10);
  res.on('close', () => clearInterval(timer));
};
/** 64 MiB of zeros. */
const zeros = gzipSync(Buffer.alloc(64 * MEBIBYTE), { level: constants.Z_BEST_SPEED });
const bomb: Respond = (res) =>
  void res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(zeros);
const page: Respond = (res) =>
  void res.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>maintenance</p>');
const redirect: Respond = (res) => void res.writeHead(302, { Location: `${provider.issuer}/token` }).end();
const nested: Respond = (res) =>
  void res
    .writeHead(200, { 'Content-Type': 'application/json' })
    .end(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
const unavailable = { name: 'SignInFailure', reason: 'provider_unavailable' };
const invalid = { name: 'SignInFailure', reason: 'response_invalid' };

describe.each<Part>(['metadata', 'keys', 'token', 'userinfo'])('A hostile provider at its %s', (part) => {
  const hostile = async (response: Respond, timeoutMs?: number) => {
    // Without groups in the ID token, the userinfo endpoint is asked as well.
    const id_token = await jwt({ groups: undefined });
    await respond({
      token: json(tokens(id_token)),
      [part]: response,
    });
    return signIn(timeoutMs);
  };

  it('has no more than a mebibyte of an endless response kept', async () => {
    written = 0;
    await expect(hostile(endless)).rejects.toMatchObject({
      ...unavailable,
      detail: 'a response of more than 1048576 bytes',
    });
    // The rest is in the buffers of sockets.
    expect(written).toBeLessThan(32 * MEBIBYTE);
  });

  it('has no more than a mebibyte of a compressed response kept', async () => {
    await expect(hostile(bomb)).rejects.toMatchObject({
      detail: 'a response of more than 1048576 bytes',
    });
  });

  it('is given up on when it sends byte after byte, or nothing', async () => {
    await expect(hostile(slow, 100)).rejects.toMatchObject(unavailable);
    await expect(hostile(() => {}, 100)).rejects.toMatchObject(unavailable);
  });

  it('is unavailable where its status is none of HTTP', async () => {
    for (const status of [600, 999])
      await expect(hostile(json({}, status))).rejects.toMatchObject({
        ...unavailable,
        detail: `status ${status}`,
      });
  });

  it('gets nowhere with a page, a redirect, or JSON that is none of its kind', async () => {
    for (const response of [page, redirect])
      await expect(hostile(response)).rejects.toMatchObject(unavailable);
    for (const response of [json(null), json([]), nested])
      await expect(hostile(response)).rejects.toMatchObject({ name: 'SignInFailure' });
  });
});

describe('A hostile provider', () => {
  it.each<[Record<string, unknown>]>([
    [{ issuer: 'https://evil.example.com' }],
    [{ authorization_endpoint: 'javascript:alert(1)' }],
    [{ authorization_endpoint: null }],
    [{ authorization_endpoint: '/auth' }],
    [{ token_endpoint: 'file:///etc/passwd' }],
    [{ token_endpoint: 'data:application/json,{}' }],
    [{ jwks_uri: 'data:application/json,{"keys":[]}' }],
    [{ jwks_uri: 5 }],
    [{ id_token_signing_alg_values_supported: 'ES256' }],
  ])('gets nowhere with %j in its metadata', async (metadata) => {
    await respond({}, metadata);
    await expect(signIn()).rejects.toMatchObject(invalid);
  });

  it.each<[string, object, object?]>([
    ['a key that is not there', {}, { kid: 'other' }],
    ['an extension that must be understood', {}, { crit: ['x'], x: true }],
    ['an empty subject', { sub: '' }],
    ['a subject with a line break', { sub: 'alice\n' }],
    ['a subject of 100 000 characters', { sub: 'a'.repeat(100_000) }],
    ['a subject beyond ASCII', { sub: 'älice' }],
    ['a list of subjects', { sub: ['alice'] }],
    ['another nonce', { nonce: 'other' }],
    ['another client as its party', { aud: ['tollgate', 'other'], azp: 'other' }],
    ['another issuer', { iss: 'https://evil.example.com' }],
    ['times that are none', { exp: 'never' }],
  ])('gets nowhere with an ID token with %s', async (_what, claims, header = {}) => {
    await expect(withIdToken(claims, header)).rejects.toMatchObject(invalid);
  });

  it('gets nowhere without a signature, or with its public key as a shared secret', async () => {
    const shared = new TextEncoder().encode(JSON.stringify(provider.publicKey));
    const claims = {
      iss: provider.issuer,
      aud: 'tollgate',
      sub: 'alice',
      nonce: 'n',
      iat: nowS(),
      exp: nowS() + 300,
    };
    const symmetric = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'k' }).sign(shared);
    const [, payload] = (await symmetric).split('.');
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`;
    const secretKey = { kty: 'oct', kid: 'k', k: Buffer.from(shared).toString('base64url') };
    for (const id_token of [await symmetric, none]) {
      await respond({
        token: json(tokens(id_token)),
        keys: json({ keys: [secretKey, provider.publicKey] }),
      });
      await expect(signIn()).rejects.toMatchObject(invalid);
    }
  });

  it.each<[string, object]>([
    ['none of its parts', { kty: 'EC', crv: 'P-256' }],
    ['a point that is not on the curve', { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }],
    ['parts that are no numbers', { kty: 'EC', crv: 'P-256', x: '!', y: '!' }],
  ])('gets nowhere with a key with %s', async (_what, key) => {
    await respond({ keys: json({ keys: [{ ...key, kid: 'k' }] }) });
    await expect(signIn()).rejects.toMatchObject(invalid);
  });

  it('says which groups a person has among very many, and only those that are texts', async () => {
    const groups = [...Array.from({ length: 10_000 }, (_, index) => `group ${index}`), ['nested'], { a: 1 }];
    const { claims } = await withIdToken({ groups });
    expect(claims.groups).toHaveLength(10_002);
    const map = parseScopesMap('{"nested": ["all"], "group 9999": ["keys:read"]}');
    expect(grantOf(map, claimValues(claims, 'groups') ?? [])?.scopes).toEqual(['keys:read']);
  });

  it('does not name a person by an address that it has not verified, also where it says so in a text', () => {
    const email = 'alice@example.com';
    for (const email_verified of [false, 'false', 0, ''])
      expect(emailOf({ email, email_verified })).toBeNull();
    for (const email_verified of [true, 'true', undefined, null])
      expect(emailOf({ email, email_verified })).toBe(email);
  });

  it.each<[object, object, boolean]>([
    [{ email_verified: true }, { email: 'b@x', email_verified: false }, false],
    [{ email: 'b@x' }, { email: 'a@x', email_verified: true }, false],
    [{ email: 'a@x', email_verified: false }, { email: 'a@x', email_verified: true }, false],
    [{ email_verified: true }, { email: 'a@x' }, true],
    [{ email: 'a@x' }, { email: 'a@x', email_verified: true }, true],
    [{ email: 'a@x' }, { email_verified: true }, true],
    [{ email: 'a@x', email_verified: true }, { email: 'b@x', email_verified: false }, true],
    [{ email: null }, { email: 'a@x', email_verified: true }, true],
    [{ email: null, email_verified: true }, { email: 'a@x' }, false],
  ])(
    'verifies an address only where it says so of that address: %j, userinfo %j',
    async (claims, more, trusted) => {
      await respond({
        token: json(tokens(await jwt({ name: undefined, ...claims }))),
        userinfo: json({ sub: 'alice', ...more }),
      });
      expect(isTrusted((await signIn()).claims, 'email')).toBe(trusted);
    },
  );

  it.each<[string, object, object]>([
    ['groups', { groups: null }, { groups: ['admins'] }],
    ['email', { email: null }, { email: 'admins' }],
    ['realm_access.roles', { realm_access: {} }, { realm_access: { roles: ['admins'] } }],
    ['access.gateway', { access: { shop: ['clerks'] } }, { access: { shop: [], gateway: ['admins'] } }],
  ])('gives the claim %s at the userinfo endpoint, where an ID token has %j', (name, token, userInfo) => {
    const said = withoutNull({ ...token });
    expect(claimValues(mergedClaims(said, { ...userInfo }, name), name)).toEqual(['admins']);
  });

  it('leaves to the userinfo endpoint what is null in an ID token', async () => {
    const userInfo = { name: 'Alice Example', email: 'alice@example.com' };
    await respond({
      token: json(tokens(await jwt({ name: null, email: null }))),
      userinfo: json({ sub: 'alice', ...userInfo }),
    });
    expect((await signIn()).claims).toMatchObject({ groups: ['admins'], ...userInfo });
  });

  it('takes no claim away with a null at the userinfo endpoint', async () => {
    const claim = 'realm_access.roles';
    await respond({
      token: json(tokens(await jwt({ name: undefined, realm_access: { roles: ['admins'] } }))),
      userinfo: json({ sub: 'alice', name: 'Alice', email: null, [claim]: null }),
    });
    const { claims } = await redeem(client(undefined, undefined, { claim }));
    expect(claimValues(claims, claim)).toEqual(['admins']);
    // At a renewal the address that was known stays.
    expect(claims).not.toHaveProperty('email');
  });

  it('gives no claims of another person at the userinfo endpoint', async () => {
    await respond({
      token: json(tokens(await jwt({ name: undefined }))),
      userinfo: json({ sub: 'bob', groups: ['admins'] }),
    });
    await expect(signIn()).rejects.toMatchObject(invalid);
  });
});

describe('An access token', () => {
  function accessTokens(asked: IdentityProvider, clock: ManualClock): AccessTokens {
    const map = parseScopesMap('{"admins": ["all"]}');
    return new AccessTokens({
      ...{ provider: asked, audience: 'tollgate', claim: 'groups', map, clock },
      log: pino({ level: 'silent' }),
    });
  }
  const token = (claims: object = {}) => jwt({ client_id: 'billing', ...claims }, { typ: 'at+jwt' });

  it('is rejected where the key of its signature can not be read, and does not keep new keys away', async () => {
    const broken = { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' };
    const clock = new ManualClock(Date.now());
    await respond({ keys: json({ keys: [{ ...broken, kid: 'k' }] }) });
    const tokens = accessTokens(client(clock), clock);
    const authenticate = async () => tokens.authenticate(await token({ exp: nowS() + 3600 }));
    expect(await authenticate()).toBeUndefined();
    clock.advance(590_000);
    expect(await authenticate()).toBeUndefined();
    await respond({});
    clock.advance(15_000);
    // The keys are fetched beside the request.
    await until(async () => (await authenticate()) !== undefined);
  });

  it.each<Part>(['metadata', 'keys'])(
    'is not taken for a wrong one where the status of the %s is none of HTTP',
    async (part) => {
      const clock = new ManualClock(Date.now());
      await respond({ [part]: json({}, 999) });
      await expect(accessTokens(client(clock), clock).authenticate(await token())).rejects.toMatchObject({
        code: 'provider_unavailable',
      });
    },
  );

  it('ends at a time that can be stored, whatever it says', async () => {
    const clock = new ManualClock(Date.now());
    await respond({});
    const found = await accessTokens(client(clock), clock).authenticate(await token({ exp: 1e300 }));
    expect(new Date(found?.expiresAtMs ?? Number.NaN).toISOString()).toBe('9999-12-31T23:59:59.999Z');
  });

  it('does not make the gateway ask a provider for its metadata again and again that has never responded', async () => {
    const clock = new ManualClock(Date.now());
    await respond({ metadata: (res) => void res.destroy() });
    const tokens = accessTokens(client(clock), clock);
    const rejected = async () => tokens.authenticate(await token()).catch(({ code }) => code);
    for (let times = 0; times < 3; times += 1) expect(await rejected()).toBe('provider_unavailable');
    expect(provider.requests).toEqual(['metadata']);
    await respond({});
    clock.advance(1000);
    expect(await tokens.authenticate(await token())).toMatchObject({ name: 'billing' });
  });

  it('neither waits for a provider that does not respond, nor has it asked each time', async () => {
    const clock = new ManualClock(Date.now());
    await respond({});
    const asked = client(clock);
    const tokens = accessTokens(asked, clock);
    const authenticate = async () => tokens.authenticate(await token({ exp: nowS() + 7200 }));
    expect(await authenticate()).toMatchObject({ name: 'billing' });
    clock.advance(3_600_000);
    const hanging = Promise.withResolvers<ServerResponse>();
    await respond({ metadata: hanging.resolve });
    expect(await authenticate()).toMatchObject({ name: 'billing' });
    (await hanging.promise).destroy();
    // A sign-in waits for it.
    await asked.authorizationUrl(ATTEMPT);
    for (let times = 0; times < 3; times += 1) await authenticate();
    expect(provider.requests.filter((part) => part === 'metadata')).toHaveLength(1);
  });
});
