import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { AUDIENCE, startSignIn, type TestSignIn } from './start-sign-in.ts';
import { CLIENT_ID } from './test-provider.ts';

describe('An access token of the identity provider', () => {
  let gateway: TestSignIn;

  beforeAll(async () => {
    gateway = await startSignIn();
  });

  afterAll(() => gateway.stop());

  const nowS = () => Math.floor(gateway.management.clock.nowMs() / 1000);
  const usual = (): JWTPayload => ({ aud: AUDIENCE, iat: nowS(), exp: nowS() + 300, groups: ['support'] });

  async function whoami(token: string): Promise<Response> {
    return fetch(`${gateway.origin}/tollgate/whoami`, { headers: { Authorization: `Bearer ${token}` } });
  }

  it('lets a program do what the map grants it, without a request to the provider for each', async () => {
    const token = await gateway.provider.accessToken(usual());
    const response = await whoami(token);
    expect([response.status, await response.json()]).toEqual([
      200,
      expect.objectContaining({ type: 'program', name: 'billing', subject: 'billing', sessionId: null }),
    ]);
    gateway.provider.requests.length = 0;
    expect((await whoami(await gateway.provider.accessToken(usual()))).status).toBe(200);
    expect(gateway.provider.requests).toEqual([]);
  });

  it('has the Idempotency-Keys of its client, and not those of another one for the same subject', async () => {
    const send = async (client_id: string) => {
      const token = await gateway.provider.accessToken({ ...usual(), client_id, groups: ['admins'] });
      const headers = { Authorization: `Bearer ${token}`, 'Idempotency-Key': 'deploy-7' };
      const url = `${gateway.origin}/consumer-api-key/create`;
      const body = JSON.stringify({ name: 'of a subject' });
      return fetch(url, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body,
      });
    };
    const [first, other] = [await send('deployer'), await send('little-app')];
    expect([first.status, other.status]).toEqual([201, 201]);
    expect(other.headers.has('Idempotency-Replayed')).toBe(false);
    expect((await send('deployer')).headers.get('Idempotency-Replayed')).toBe('true');
  });

  it('gets the number of the sessions that it may see, which are none', async () => {
    const headers = { Authorization: `Bearer ${await gateway.provider.accessToken(usual())}` };
    const list = (count: string) =>
      fetch(`${gateway.origin}/tollgate/session?count=${count}`, { headers }).then(async (response) => [
        response.status,
        await response.json(),
      ]);
    expect(await list('true')).toEqual([200, { sessions: [], total: 0 }]);
    expect(await list('yes')).toEqual([400, expect.objectContaining({ code: 'invalid_parameter' })]);
  });

  it('is valid a little longer where clocks differ, and no longer', async () => {
    const { provider } = gateway;
    const expired = (seconds: number) => provider.accessToken({ ...usual(), exp: nowS() - seconds });
    const early = (seconds: number) => provider.accessToken({ ...usual(), nbf: nowS() + seconds });
    expect((await whoami(await expired(20))).status).toBe(200);
    expect((await whoami(await expired(40))).status).toBe(401);
    expect((await whoami(await early(20))).status).toBe(200);
    expect((await whoami(await early(40))).status).toBe(401);
  });

  it.each<[string, Record<string, unknown>, Record<string, string>]>([
    ['another audience', { aud: 'https://other.example.com' }, {}],
    ['the audience of ID tokens', { aud: CLIENT_ID }, {}],
    ['another issuer', { iss: 'https://evil.example.com' }, {}],
    ['no expiry', { exp: undefined }, {}],
    ['no client', { client_id: undefined }, {}],
    ['a control character in the client', { client_id: 'a\nb' }, {}],
    ['no subject', { sub: undefined }, {}],
    ['no value of the map', { groups: ['others'] }, {}],
    ['a value that an object has by itself', { groups: ['constructor', '__proto__'] }, {}],
    ['the type of an ID token', {}, { typ: 'JWT' }],
    ['the id of an unknown key', {}, { kid: 'unknown' }],
  ])('is rejected with %s', async (_what, claims, header) => {
    const token = await gateway.provider.accessToken({ ...usual(), ...claims }, header);
    expect((await whoami(token)).status).toBe(401);
  });

  it('is rejected without a signature, with one of a shared secret, and with one of another key', async () => {
    const claims = { ...usual(), iss: gateway.provider.issuer, client_id: 'billing', sub: 'billing' };
    const sign = (alg: string, key: Parameters<SignJWT['sign']>[0]) =>
      new SignJWT(claims).setProtectedHeader({ alg, typ: 'at+jwt', kid: 'first' }).sign(key);
    const { privateKey } = await generateKeyPair('ES256');
    const tokens = [
      `${new UnsecuredJWT(claims).encode()}x`,
      await sign('HS256', new TextEncoder().encode('a secret of thirty-two characters')),
      await sign('ES256', privateKey),
    ];
    for (const token of tokens) expect((await whoami(token)).status).toBe(401);
  });

  it('with an unknown key makes the gateway look for new keys once, not each time', async () => {
    gateway.provider.requests.length = 0;
    const unknown = await gateway.provider.accessToken(usual(), { kid: 'never there' });
    for (let times = 0; times < 5; times += 1) expect((await whoami(unknown)).status).toBe(401);
    expect(gateway.provider.requests.length).toBeLessThanOrEqual(1);
  });

  it('is accepted with a key that is new, and no longer with one that the provider has withdrawn', async () => {
    const { provider } = gateway;
    const before = await provider.accessToken(usual());
    await provider.rotateKeys('second');
    // For so long unknown keys are not looked for again.
    const later = Date.now() + 31_000;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(later);
    try {
      expect((await whoami(await provider.accessToken(usual()))).status).toBe(200);
      expect((await whoami(before)).status).toBe(401);
    } finally {
      clock.mockRestore();
    }
  });

  /** As a program that may do everything, with a token that ends at `exp`. Seconds since 1970. */
  async function post(path: string, body: object, exp = nowS() + 300): Promise<Response> {
    const token = await gateway.provider.accessToken({ ...usual(), exp, groups: ['admins'] });
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    return fetch(`${gateway.origin}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  it('lets a job change keys until it ends', async () => {
    const { id } = await gateway.management.createKey();
    const exp = nowS() + 100;
    const response = await post('/api-keys/bulk', { ids: [id], action: 'disable' }, exp);
    const { jobId } = (await response.json()) as { readonly jobId: string };
    const job = await gateway.management.records.jobs.find(jobId);
    expect(job?.allowedUntilMs).toBe(exp * 1000);
    // Those whose author is looked up with each key have no such end.
    const { body } = await gateway.management.send('post', '/api-keys/bulk', { ids: [id], action: 'enable' });
    expect(await gateway.management.records.jobs.find(body.jobId)).toMatchObject({ allowedUntilMs: null });
  });

  it('names the program in the audit log', async () => {
    await post('/consumer-api-key/create', { name: 'made by a program' });
    const { body: log } = await gateway.management.send('get', '/tollgate/audit-log?actorId=billing');
    expect(log.entries).toContainEqual(
      expect.objectContaining({
        action: 'key.create',
        actor: expect.objectContaining({ type: 'program', subject: 'billing' }),
      }),
    );
  });
});
