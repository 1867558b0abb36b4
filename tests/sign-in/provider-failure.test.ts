import { describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { isTrusted } from '../../src/sign-in/claims.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ATTEMPT, json, type Respond, redeem, ScriptedProvider, tokens } from './scripted-provider.ts';

const provider = new ScriptedProvider();
const { jwt, respond, client, signIn } = provider;
const withRefreshToken = { refreshToken: 'r', accessToken: 'a' };
const withoutRefreshToken = { refreshToken: null, accessToken: 'a' };

/** A response with this status, with or without a challenge (RFC 6750, section 3). */
const failing =
  (status: number, hasChallenge: boolean): Respond =>
  (res, req) => {
    if (hasChallenge) res.setHeader('WWW-Authenticate', 'Bearer error="invalid_token"');
    json({ error: 'access_denied' }, status)(res, req);
  };
const renew = (tokens: Parameters<ReturnType<typeof client>['renew']>[0], claim = 'groups') =>
  client(undefined, undefined, { claim }).renew(tokens, 'alice', async () => {});

describe('At a sign-in', () => {
  it.each([401, 403, 429, 503])(
    'userinfo with status %i keeps no person out who lacks only a name',
    async (status) => {
      await respond({
        token: json(tokens(await jwt({ name: undefined }))),
        userinfo: failing(status, true),
      });
      expect(await signIn()).toMatchObject({ subject: 'alice', claims: { groups: ['admins'] } });
    },
  );

  it('userinfo that fails for a name alone is in the log, without its text', async () => {
    const lines: string[] = [];
    const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(line) });
    await respond({
      token: json(tokens(await jwt({ name: undefined }))),
      userinfo: failing(403, true),
    });
    await redeem(client(undefined, undefined, { log }));
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        ...{ level: pino.levels.values.warn, event: 'userinfo', reason: 'provider_rejected' },
        ...{ detail: 'status 403', msg: 'the name of a person could not be fetched' },
      },
    ]);
  });

  it.each(['server_error', 'temporarily_unavailable', 'unauthorized_client'])(
    'the error %s with which the browser comes back says nothing about the person',
    async (error) => {
      await respond({});
      const callback = new URL(`http://127.0.0.1/cb?error=${error}&state=s`);
      await expect(client().redeem(callback, ATTEMPT)).rejects.toMatchObject({
        ...{ reason: 'provider_unavailable', detail: error },
      });
    },
  );

  it('keys that could not be fetched yet are fetched again after a second', async () => {
    const clock = new ManualClock(0);
    const asked = client(clock);
    await respond({ keys: json({}, 503) });
    await expect(redeem(asked)).rejects.toMatchObject({ reason: 'provider_unavailable' });
    await respond({});
    clock.advance(1000);
    expect(await redeem(asked)).toMatchObject({ subject: 'alice' });
  });
});

describe.each([
  ['with a challenge', true],
  ['without a challenge', false],
])('At a renewal without a refresh token, userinfo %s', (_what, hasChallenge) => {
  it.each([400, 401, 403])('rejects the person with status %i', async (status) => {
    await respond({ userinfo: failing(status, hasChallenge) });
    await expect(renew(withoutRefreshToken)).rejects.toMatchObject({
      ...{ reason: 'provider_rejected', detail: `status ${status}` },
    });
  });

  it.each([408, 429, 500, 503, 999])('says nothing about the person with status %i', async (status) => {
    await respond({ userinfo: failing(status, hasChallenge) });
    await expect(renew(withoutRefreshToken)).rejects.toMatchObject({ reason: 'provider_unavailable' });
  });
});

describe('At a renewal with a refresh token', () => {
  it.each([408, 429, 500, 503, 999])(
    'an error of the token endpoint says nothing about the person with status %i',
    async (status) => {
      await respond({ token: json({ error: 'rate_limited' }, status) });
      await expect(renew(withRefreshToken)).rejects.toMatchObject({ reason: 'provider_unavailable' });
    },
  );

  it.each(['invalid_client', 'unauthorized_client'])(
    'the error %s is about the client of the gateway, and says nothing about the person',
    async (error) => {
      await respond({ token: json({ error }, 400) });
      await expect(renew(withRefreshToken)).rejects.toMatchObject({ reason: 'provider_unavailable' });
    },
  );

  it('an error of the token endpoint rejects the person with status 400', async () => {
    await respond({ token: json({ error: 'invalid_grant' }, 400) });
    await expect(renew(withRefreshToken)).rejects.toMatchObject({ reason: 'provider_rejected' });
  });

  describe('that maps addresses, of which the ID token has one', () => {
    const renewed = async (claims: object) => {
      const id_token = await jwt({ email: 'alice@example.com', ...claims });
      await respond({ token: json(tokens(id_token)), userinfo: failing(503, false) });
      return renew(withRefreshToken, 'email');
    };

    it.each<[string, object]>([
      ['with a name', {}],
      ['without a name', { name: undefined }],
      ['with null as email_verified', { email_verified: null }],
    ])(
      'userinfo that is away says nothing about an address that it may verify, %s',
      async (_what, claims) => {
        await expect(renewed(claims)).rejects.toMatchObject({ reason: 'provider_unavailable' });
      },
    );

    it.each([true, false])(
      'userinfo is not needed where the token says that email_verified is %j',
      async (verified) => {
        const { claims } = await renewed({ name: undefined, email_verified: verified });
        expect(isTrusted(claims, 'email')).toBe(verified);
      },
    );
  });

  it('userinfo rejects the person if the new tokens have no ID token', async () => {
    await respond({
      token: json({ access_token: 'b', token_type: 'Bearer' }),
      userinfo: failing(403, false),
    });
    await expect(renew(withRefreshToken)).rejects.toMatchObject({ reason: 'provider_rejected' });
  });
});

describe('At the start of a sign-in on another device', () => {
  const start = async (error: string, status = 400) => {
    const metadata = { device_authorization_endpoint: `${provider.issuer}/device` };
    await respond({ device: json({ error }, status) }, metadata);
    return client().startDevice();
  };

  it.each(['unauthorized_client', 'unsupported_grant_type', 'invalid_grant', 'invalid_request'])(
    'the error %s means that the client may not use device authorization',
    async (error) => {
      expect(await start(error)).toBeUndefined();
    },
  );

  it('other errors are those of the provider', async () => {
    await expect(start('invalid_scope')).rejects.toMatchObject({ reason: 'provider_rejected' });
    await expect(start('temporarily_unavailable')).rejects.toMatchObject({ reason: 'provider_unavailable' });
    await expect(start('invalid_request', 503)).rejects.toMatchObject({ reason: 'provider_unavailable' });
  });
});
