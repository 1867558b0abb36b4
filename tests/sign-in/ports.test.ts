import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ask, original } from '../authorize/support/ask.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { CLIENT_ID, CLIENT_SECRET, TestBrowser, TestProvider } from './test-provider.ts';

// Cookies know no ports: a browser sends that of the console to every port of the host.
describe('The cookie of a session, where management has its own port', () => {
  const cookies: string[] = [];
  let provider: TestProvider;
  let fleet: Fleet;
  let admin: string;
  let sent: Record<string, string>;
  let secret: string;

  beforeAll(async () => {
    const port = await freePort();
    admin = `http://127.0.0.1:${port}`;
    provider = await TestProvider.start({ redirectUris: [`${admin}/tollgate/sign-in/callback`] });
    const settings = {
      ...{ ADMIN_PORT: `${port}`, AUTHORIZE_PORT: '0', PUBLIC_ADMIN_URL: admin },
      ...{ OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: CLIENT_ID, OIDC_CLIENT_SECRET: CLIENT_SECRET },
      ...{ OIDC_SCOPES: 'openid profile email groups', OIDC_SCOPES_MAP: '{"admins": ["all"]}' },
    };
    fleet = await startInProcessFleet(1, settings, (req, res) => {
      cookies.push(req.headers.cookie ?? 'none');
      res.end('ok');
    });
    const browser = new TestBrowser();
    await browser.open(`${admin}/tollgate/sign-in`, (url) => url.startsWith(`${admin}/tollgate/console`));
    sent = { Cookie: browser.cookiesOf(admin), Origin: admin, 'Tollgate-Console': '1' };
    const response = await fetch(`${admin}/consumer-api-key/create`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${ROOT_TOKEN}`, 'Content-Type': 'application/json' },
      body: '{"name":"a key"}',
    });
    secret = ((await response.json()) as { secret: string }).secret;
  });

  afterAll(async () => {
    await fleet?.stop();
    await provider?.stop();
  });

  const publicUrl = () => fleet.replicas[0]?.url ?? '';
  const authorizeUrl = () => fleet.replicas[0]?.authorizeUrl ?? '';

  it('is a credential there, and on no other port', async () => {
    expect(sent.Cookie).toMatch(/^__Host-tollgate=tgs_/);
    expect((await ask(admin, '/tollgate/whoami', { headers: sent })).body).toMatchObject({ type: 'person' });
    const proxied = await ask(publicUrl(), '/tollgate/whoami', { headers: sent });
    expect([proxied.status, proxied.body.code]).toEqual([401, 'missing_api_key']);
    const signIn = await ask(publicUrl(), '/tollgate/sign-in', { headers: sent });
    expect([signIn.status, signIn.headers['set-cookie']]).toEqual([401, undefined]);
    const verified = await ask(authorizeUrl(), '/verify', { method: 'POST', headers: sent });
    expect(verified.status).toBe(401);
  });

  it('comes neither to the backend nor to that of another gateway', async () => {
    const headers = { Cookie: `a=1; ${sent.Cookie}; b=2`, Authorization: `Bearer ${secret}` };
    expect((await ask(publicUrl(), '/v1/orders', { headers })).status).toBe(200);
    expect(cookies).toEqual(['a=1; b=2']);
    const both = { ...original(secret), Cookie: `a=1; ${sent.Cookie}` };
    const allowed = await ask(authorizeUrl(), '/authorize/original', { headers: both });
    expect([allowed.status, allowed.headers.cookie]).toEqual([200, 'a=1']);
    const alone = { ...original(secret), Cookie: `${sent.Cookie}` };
    const emptied = await ask(authorizeUrl(), '/authorize/original', { headers: alone });
    expect([emptied.status, emptied.headers.cookie]).toEqual([200, '']);
    const none = await ask(authorizeUrl(), '/authorize/original', { headers: original(secret) });
    expect([none.status, none.headers.cookie]).toEqual([200, undefined]);
  });

  it('stands in no line of the log', () => {
    const [, ofSession = 'missing'] = /__Host-tollgate=(\w+)/.exec(sent.Cookie ?? '') ?? [];
    const output = fleet.replicas[0]?.output() ?? '';
    expect(output).toContain('signed_in');
    expect(output).not.toContain(ofSession);
    expect(output).not.toMatch(/[?&]code=/);
  });
});
