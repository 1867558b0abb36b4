import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import { exportJWK, generateKeyPair } from 'jose';
import {
  ATTEMPT,
  CLIENT_SECRET,
  json,
  nowS,
  type Respond,
  redeem,
  ScriptedProvider,
  tokens,
} from './scripted-provider.ts';

// What the conformance suite of the OpenID Foundation wants of a relying party in its plans "basic", "config" and "refresh token", by the names of its
// tests (github.com/openid-certification/conformance-suite). The suite itself is a service in Java.

const provider = new ScriptedProvider('RS256');
const { jwt, respond, client, signIn } = provider;
const invalid = { name: 'SignInFailure', reason: 'response_invalid' };

/** As the provider whose ID token has these claims. */
async function signInWith(claims: object) {
  await respond({ token: json(tokens(await jwt(claims))) });
  return signIn();
}

/** What a request to the token endpoint has said of the client. */
interface SeenClient {
  readonly authorization: string | undefined;
  readonly secret: string | null;
}

/** An endpoint for tokens, or for sign-ins on a device, that knows the client only by its secret in the header, or only in the body. */
function strict(place: 'header' | 'body', seen: SeenClient[], status = 401, challenge = true): Respond {
  return async (res, req) => {
    const { authorization } = req.headers;
    const secret = new URLSearchParams(await text(req)).get('client_secret');
    seen.push({ authorization, secret });
    const isKnown = place === 'header' ? authorization === BASIC : secret === CLIENT_SECRET;
    if (isKnown) return json(tokens(await jwt(), { refresh_token: 'r', ...DEVICE }))(res, req);
    if (challenge) res.setHeader('WWW-Authenticate', 'Basic realm="provider"');
    json({ error: 'invalid_client' }, status)(res, req);
  };
}
/** RFC 8628, section 3.2. */
const DEVICE = {
  ...{ device_code: 'd', user_code: 'u', expires_in: 600 },
  verification_uri: 'https://login.example.com/device',
};
/** RFC 6749, section 2.3.1: both are encoded as in a form. */
const BASIC = `Basic ${Buffer.from('tollgate:secret%3A+of+%2B+the+client').toString('base64')}`;

describe('A relying party with the code flow', () => {
  it('oidcc-client-test, idtoken-sig-rs256: signs in with a good ID token', async () => {
    await respond({});
    expect(await signIn()).toMatchObject({ subject: 'alice', claims: { groups: ['admins'] } });
  });

  it.each<[string, object]>([
    ['invalid-iss', { iss: 'https://another.example.com' }],
    ['missing-sub', { sub: undefined }],
    ['invalid-aud', { aud: 'another' }],
    ['missing-aud', { aud: undefined }],
    ['missing-iat', { iat: undefined }],
    ['nonce-invalid', { nonce: 'another' }],
    ['a missing nonce', { nonce: undefined }],
    ['a missing exp', { exp: undefined }],
    ['an exp in the past', { exp: nowS() - 3600 }],
  ])('oidcc-client-test-%s: rejects the ID token', async (_name, claims) => {
    await expect(signInWith(claims)).rejects.toMatchObject(invalid);
  });

  it('oidcc-client-test-idtoken-sig-none: rejects an ID token without a signature', async () => {
    const [, payload] = (await jwt()).split('.');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    await respond({ token: json(tokens(`${none}.${payload}.`)) });
    await expect(signIn()).rejects.toMatchObject(invalid);
  });

  it('oidcc-client-test-invalid-sig-rs256: rejects an ID token with a wrong signature', async () => {
    const token = await jwt();
    const last = token.lastIndexOf('.');
    const wrong = [...token.slice(last + 1)].toReversed().join('');
    await respond({ token: json(tokens(`${token.slice(0, last)}.${wrong}`)) });
    await expect(signIn()).rejects.toMatchObject(invalid);
  });

  it('oidcc-client-test-kid-absent-single-jwks: takes the only key that can have signed', async () => {
    const { kid: _, ...nameless } = provider.publicKey;
    const other = await exportJWK((await generateKeyPair('ES256')).publicKey);
    const idToken = await jwt({}, { kid: undefined });
    await respond({ token: json(tokens(idToken)), keys: json({ keys: [other, nameless] }) });
    expect(await signIn()).toMatchObject({ subject: 'alice' });
  });

  it('oidcc-client-test-kid-absent-multiple-jwks: rejects a signature whose key it would have to guess', async () => {
    const { kid: _, ...nameless } = provider.publicKey;
    const other = await exportJWK((await generateKeyPair('RS256')).publicKey);
    const idToken = await jwt({}, { kid: undefined });
    await respond({ token: json(tokens(idToken)), keys: json({ keys: [other, nameless] }) });
    await expect(signIn()).rejects.toMatchObject(invalid);
  });

  it('oidcc-client-test-scope-userinfo-claims, userinfo-bearer-header: asks for its scopes, and for their claims with the access token', async () => {
    let authorization: string | undefined;
    await respond({
      token: json(tokens(await jwt({ groups: undefined }))),
      userinfo: (res, req) => {
        ({ authorization } = req.headers);
        json({ sub: 'alice', groups: ['support'] })(res, req);
      },
    });
    const url = await client().authorizationUrl(ATTEMPT);
    expect(url.searchParams.get('scope')).toBe('openid profile');
    expect(url.searchParams.get('response_type')).toBe('code');
    expect(await signIn()).toMatchObject({ claims: { name: 'Alice', groups: ['support'] } });
    expect(authorization).toBe('Bearer a');
  });

  it('oidcc-client-test-userinfo-invalid-sub: rejects the claims of another person', async () => {
    const token = json(tokens(await jwt({ groups: undefined })));
    await respond({ token, userinfo: json({ sub: 'bob', groups: ['admins'] }) });
    await expect(signIn()).rejects.toMatchObject(invalid);
  });
});

describe('A relying party with a secret', () => {
  it.each<[string, object, number]>([
    ['without a word of how', {}, 1],
    ['in the header only', { token_endpoint_auth_methods_supported: ['client_secret_basic'] }, 1],
    ['wrongly', { token_endpoint_auth_methods_supported: ['client_secret_post'] }, 2],
    [
      'in both places',
      { token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'] },
      2,
    ],
    ['in a list that is none', { token_endpoint_auth_methods_supported: 5 }, 1],
  ])(
    'oidcc-client-test-client-secret-basic: sends it in the header where the client is registered for it, and the provider offers it %s',
    async (_how, metadata, attempts) => {
      const seen: SeenClient[] = [];
      await respond({ token: strict('header', seen) }, metadata);
      expect(await signIn()).toMatchObject({ subject: 'alice' });
      expect(seen).toHaveLength(attempts);
      expect(seen.at(-1)).toEqual({ authorization: BASIC, secret: null });
    },
  );

  it.each([
    [401, true],
    [401, false],
    [400, false],
  ])(
    'sends it in the body where the client is registered for that, and keeps to it: status %i, with a challenge: %p',
    async (status, challenge) => {
      const seen: SeenClient[] = [];
      await respond({ token: strict('body', seen, status, challenge) });
      const asked = client();
      const { tokens: kept } = await redeem(asked);
      expect(seen).toEqual([
        { authorization: BASIC, secret: null },
        { authorization: undefined, secret: CLIENT_SECRET },
      ]);
      expect(await asked.renew(kept, 'alice', async () => {})).toMatchObject({ subject: 'alice' });
      await redeem(asked);
      expect(seen.slice(2)).toEqual([seen[1], seen[1]]);
    },
  );

  it('sends it where the client is registered for it on a device, too', async () => {
    const seen: SeenClient[] = [];
    const endpoint = strict('body', seen);
    const metadata = { device_authorization_endpoint: `${provider.issuer}/device` };
    await respond({ device: endpoint, token: endpoint }, metadata);
    expect(await client().startDevice()).toMatchObject({ deviceCode: 'd' });
    expect(await client().redeemDevice('d')).toMatchObject({ subject: 'alice' });
    expect(seen.map(({ secret }) => secret)).toEqual([null, CLIENT_SECRET, null, CLIENT_SECRET]);
  });

  it('says that the provider does not know it after both ways, which is not about the person', async () => {
    for (const challenge of [true, false]) {
      const seen: SeenClient[] = [];
      await respond({ token: strict('body', seen, 401, challenge) });
      const asked = client();
      const { tokens: kept } = await redeem(asked);
      seen.length = 0;
      const unknown: Respond = (res, req) => {
        if (challenge) res.setHeader('WWW-Authenticate', 'Basic');
        seen.push({ authorization: req.headers.authorization, secret: null });
        json({ error: 'invalid_client' }, 401)(res, req);
      };
      await respond({ token: unknown });
      const failure = { reason: 'provider_unavailable', detail: 'invalid_client' };
      await expect(asked.renew(kept, 'alice', async () => {})).rejects.toMatchObject(failure);
      // The way that was right before comes first the next time, too.
      await expect(asked.renew(kept, 'alice', async () => {})).rejects.toMatchObject(failure);
      expect(seen.map(({ authorization }) => authorization)).toEqual([undefined, BASIC, undefined, BASIC]);
    }
  });

  it('does not send a code again that the provider has taken and rejected', async () => {
    await respond({ token: json({ error: 'invalid_grant' }, 400) });
    await expect(signIn()).rejects.toMatchObject({ reason: 'provider_rejected', detail: 'invalid_grant' });
    expect(provider.requests.filter((part) => part === 'token')).toHaveLength(1);
  });
});

describe('A relying party with the metadata of its provider', () => {
  it('oidcc-client-test-discovery-openid-config, discovery-jwks-uri-keys: finds addresses and keys there', async () => {
    await respond({});
    await signIn();
    expect(provider.requests).toEqual(['metadata', 'token', 'keys']);
  });

  it('oidcc-client-test-discovery-issuer-mismatch: rejects metadata of another issuer', async () => {
    await respond({}, { issuer: 'https://another.example.com' });
    await expect(signIn()).rejects.toMatchObject(invalid);
  });

  it('oidcc-client-test-signing-key-rotation: takes a key that came between two sign-ins', async () => {
    await respond({});
    const asked = client();
    await redeem(asked);
    await provider.changeKey('second');
    await respond({});
    expect(await redeem(asked)).toMatchObject({ subject: 'alice' });
    expect(provider.requests).toEqual(['token', 'keys']);
  });

  it('oidcc-client-test-signing-key-rotation-just-before-signing: takes a key that came just before it signed', async () => {
    await respond({});
    const asked = client();
    await redeem(asked);
    const token: Respond = async (res, req) => {
      await provider.changeKey('third');
      await respond({ token });
      json(tokens(await jwt()))(res, req);
    };
    await respond({ token });
    expect(await redeem(asked)).toMatchObject({ subject: 'alice' });
  });
});

describe('A relying party that renews with a refresh token', () => {
  const kept = { refreshToken: 'r', accessToken: 'a' };

  it('oidcc-client-test-refresh-token: takes the new tokens', async () => {
    await respond({ token: json(tokens(await jwt({ nonce: undefined }), { refresh_token: 's' })) });
    expect(await client().renew(kept, 'alice', async () => {})).toMatchObject({
      subject: 'alice',
      tokens: { refreshToken: 's' },
    });
  });

  it('keeps no claim that neither an ID token nor a userinfo endpoint has said again', async () => {
    await respond(
      { token: json({ access_token: 'b', token_type: 'Bearer' }) },
      { userinfo_endpoint: undefined },
    );
    expect(await client().renew(kept, 'alice', async () => {})).toEqual({
      ...{ subject: 'alice', claims: {} },
      tokens: { refreshToken: 'r', accessToken: 'b' },
    });
  });

  it.each([
    ['issuer', { iss: 'https://another.example.com' }],
    ['sub', { sub: 'bob' }],
  ])(
    'oidcc-client-test-refresh-token-invalid-%s: rejects an ID token with another one',
    async (_name, claims) => {
      await respond({ token: json(tokens(await jwt(claims))) });
      await expect(client().renew(kept, 'alice', async () => {})).rejects.toMatchObject(invalid);
    },
  );
});
