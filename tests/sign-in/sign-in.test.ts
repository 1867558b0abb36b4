import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { SCOPES } from '../../src/permissions/scopes.ts';
import { startSignIn, type TestSignIn } from './start-sign-in.ts';
import { CLIENT_SECRET, TestBrowser } from './test-provider.ts';

const MINUTE_MS = 60_000;
const COOKIE = '__Host-tollgate';

/** The JSON of a response, whose fields the tests look at. */
// biome-ignore lint/suspicious/noExplicitAny: what a response holds is what is tested.
const bodyOf = async (response: Response | Promise<Response>): Promise<any> => (await response).json();

describe('Sign-in with an identity provider', () => {
  let gateway: TestSignIn;

  beforeAll(async () => {
    gateway = await startSignIn();
  });

  afterAll(() => gateway.stop());

  beforeEach(() => {
    const { people } = gateway.provider;
    const email_verified = true;
    people.set('alice', {
      name: 'Alice Example',
      email: 'alice@example.com',
      email_verified,
      groups: ['admins'],
    });
    people.set('sam', { name: 'Sam Support', groups: ['others', 'support'] });
    people.set('tom', { name: 'Tom of team A', groups: ['team a'] });
    people.set('nick', { name: 'Nick Nobody', groups: ['others'] });
  });

  const whoami = async (browser: TestBrowser, to?: string) => {
    const response = await gateway.call(browser, '/tollgate/whoami', to === undefined ? {} : { to });
    return { status: response.status, body: await bodyOf(response) };
  };

  /** The address at which the provider sends the browser back to the gateway. */
  async function callbackOf(browser: TestBrowser, path = '/tollgate/sign-in'): Promise<string> {
    const { origin } = gateway;
    const { url } = await browser.open(`${origin}${path}`, (next) =>
      next.startsWith(`${origin}/tollgate/sign-in/callback`),
    );
    return url;
  }

  const reasonOf = (response: Response): string | null =>
    new URL(response.headers.get('Location') ?? '', gateway.origin).searchParams.get('signIn');

  it('makes a session with the scopes that the groups of the person are mapped to', async () => {
    const browser = await gateway.signIn('alice');
    expect(await whoami(browser)).toEqual({
      status: 200,
      body: expect.objectContaining({
        ...{ type: 'person', subject: 'alice', name: 'Alice Example', email: 'alice@example.com' },
        ...{ scopes: SCOPES, onlyTags: [], adminTokenId: null, sessionId: expect.stringMatching(/^ses_/) },
      }),
    });
    const limited = await whoami(await gateway.signIn('tom'));
    expect(limited.body).toMatchObject({
      scopes: ['keys:read', 'keys:write', 'webhooks:read'],
      onlyTags: ['team:a'],
    });
  });

  it('sets a cookie that only the browser itself can use, for this host and over TLS', async () => {
    const browser = new TestBrowser();
    const response = await browser.request(await callbackOf(browser));
    expect([response.status, response.headers.get('Location')]).toEqual([303, '/tollgate/console']);
    const cookies = response.headers.getSetCookie();
    expect(cookies).toEqual([
      '__Host-tollgate-sign-in=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax',
      expect.stringMatching(
        /^__Host-tollgate=tgs_\w{36}; Path=\/; Max-Age=28800; Secure; HttpOnly; SameSite=Lax$/,
      ),
    ]);
    expect(response.headers.get('Referrer-Policy')).toBe('no-referrer');
    expect(response.headers.get('Cache-Control')).toBe('no-store');
  });

  it('goes on in the tab that began last, also after the response to that of another tab', async () => {
    const browser = new TestBrowser();
    const [first, second] = [await callbackOf(browser), await callbackOf(browser)];
    expect(reasonOf(await browser.request(first))).toBe('response_invalid');
    const response = await browser.request(second);
    expect([response.status, response.headers.get('Location')]).toEqual([303, '/tollgate/console']);
    expect((await whoami(browser)).status).toBe(200);
    expect(browser.cookiesOf(gateway.origin)).not.toContain('sign-in');
  });

  it('is over for an attempt that the provider rejects', async () => {
    const browser = new TestBrowser();
    const callback = new URL(await callbackOf(browser));
    callback.searchParams.set('code', 'x');
    expect(reasonOf(await browser.request(callback.href))).toBe('provider_rejected');
    expect(browser.cookiesOf(gateway.origin)).not.toContain('sign-in');
  });

  it('gives no session to a person to whom the map grants nothing', async () => {
    const browser = await gateway.signIn('nick');
    expect(browser.cookiesOf(gateway.origin)).not.toContain(COOKIE);
    const again = new TestBrowser();
    const response = await again.request(await callbackOf(again));
    expect(reasonOf(response)).toBe('no_scopes');
  });

  it('knows a session on every replica, and its end with the next request', async () => {
    const { otherOrigin } = gateway;
    const browser = await gateway.signIn();
    expect((await whoami(browser, otherOrigin)).status).toBe(200);
    const ended = await gateway.call(browser, '/tollgate/session/current', { method: 'DELETE' });
    expect(ended.status).toBe(200);
    expect(ended.headers.getSetCookie()[0]).toMatch(/^__Host-tollgate=; .*Max-Age=0/);
    for (const to of [gateway.origin, otherOrigin]) expect((await whoami(browser, to)).status).toBe(401);
  });

  it('lets an administrator of tokens see and end the sessions of others, and anyone only their own', async () => {
    const [alice, sam] = [await gateway.signIn('alice'), await gateway.signIn('sam')];
    const own = await bodyOf(gateway.call(sam, '/tollgate/session?count=true'));
    expect(own).toMatchObject({ total: 1, sessions: [{ subject: 'sam', current: true, kind: 'browser' }] });
    const all = await bodyOf(gateway.call(alice, '/tollgate/session'));
    expect(all.sessions).toEqual(
      expect.arrayContaining([expect.objectContaining({ subject: 'sam', current: false })]),
    );
    const aliceId = (await whoami(alice)).body.sessionId;
    const end = (browser: TestBrowser, id: string) =>
      gateway.call(browser, `/tollgate/session/${id}`, { method: 'DELETE' });
    expect((await end(sam, aliceId)).status).toBe(403);
    expect((await end(alice, own.sessions[0].sessionId)).status).toBe(200);
    expect((await end(alice, own.sessions[0].sessionId)).status).toBe(404);
    expect((await whoami(sam)).status).toBe(401);
  });

  it('always makes a new session, and ends that of the same browser before it', async () => {
    const browser = await gateway.signIn();
    const before = browser.cookiesOf(gateway.origin);
    await browser.open(`${gateway.origin}/tollgate/sign-in`, (url) =>
      url.startsWith(`${gateway.origin}/tollgate/console`),
    );
    expect(browser.cookiesOf(gateway.origin)).not.toBe(before);
    const old = await gateway.call(browser, '/tollgate/whoami', { headers: { Cookie: before } });
    expect(old.status).toBe(401);
  });

  it('writes who did it into the audit log, and verifies it', async () => {
    const browser = await gateway.signIn();
    const created = await gateway.call(browser, '/consumer-api-key/create', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'made by Alice' }),
    });
    expect(created.status).toBe(201);
    const path = '/tollgate/audit-log?actorId=alice&limit=2';
    const { entries } = await bodyOf(gateway.call(browser, path));
    const actor = {
      type: 'person',
      adminTokenId: null,
      subject: 'alice',
      name: 'Alice Example',
      email: 'alice@example.com',
    };
    expect(entries).toEqual([
      expect.objectContaining({ action: 'key.create', actor }),
      expect.objectContaining({
        action: 'session.create',
        actor,
        target: expect.objectContaining({ type: 'session' }),
      }),
    ]);
    const verified = await bodyOf(gateway.call(browser, '/tollgate/audit-log/verify'));
    expect(verified.valid).toBe(true);
  });

  it('names a person in the event of a change, and has subject and email only in the audit log', async () => {
    const { management } = gateway;
    const webhook = { url: 'https://8.8.8.8/', events: ['tollgate.key.*'] };
    await management.send('post', '/tollgate/webhook/create', webhook).expect(201);
    const created = await gateway.call(await gateway.signIn(), '/consumer-api-key/create', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'made by Alice' }),
    });
    const { id } = await bodyOf(created);
    const { rows } = await sql<{ data: string }>`SELECT data FROM events WHERE subject = ${id}`.execute(
      management.records.db,
    );
    const { body } = await management.send('get', `/tollgate/audit-log?targetId=${id}`).expect(200);
    const [{ auditId, actor }] = body.entries;
    expect(actor).toMatchObject({ type: 'person', subject: 'alice', email: 'alice@example.com' });
    const named = { type: 'person', adminTokenId: null, name: actor.name };
    expect(rows.map(({ data }) => JSON.parse(data))).toMatchObject([{ auditId }]);
    expect(rows.map(({ data }) => JSON.parse(data).actor)).toEqual([named]);
  });

  it('shows and logs a person on one line, in the direction of the text, whatever the provider calls them', async () => {
    const name = 'Alice\u202eecilA\u2028\u2029\r\nroot\u0000\u200b';
    gateway.provider.people.set('alice', { name, groups: ['admins'] });
    const { body } = await whoami(await gateway.signIn('alice'));
    expect(body.name).toBe('Alice ecilA    root');
  });

  it('lets a person make admin tokens with no more than their own scopes', async () => {
    const browser = await gateway.signIn('alice');
    const create = (by: TestBrowser, scopes: readonly string[]) =>
      gateway.call(by, '/tollgate/admin-token/create', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'program', scopes }),
      });
    expect((await create(browser, ['keys:read'])).status).toBe(201);
    expect((await create(await gateway.signIn('sam'), ['keys:read'])).status).toBe(403);
  });

  it('ends a stream of events with the session, and with what the person may no longer see', async () => {
    const { provider, management } = gateway;
    const open = async (browser: TestBrowser) => {
      const { status, body } = await gateway.call(browser, '/tollgate/events?type=tollgate.key.*');
      expect(status).toBe(200);
      return body?.getReader();
    };
    const [ended, narrowed] = [await gateway.signIn('alice'), await gateway.signIn('tom')];
    const streams = [await open(ended), await open(narrowed)];
    const method = 'DELETE';
    expect((await gateway.call(ended, '/tollgate/session/current', { method })).status).toBe(200);
    provider.people.set('tom', { groups: ['team b'] });
    management.clock.advance(5 * MINUTE_MS);
    const body = { name: 'that neither may hear of', tags: ['team:a'] };
    await management.send('post', '/consumer-api-key/create', body).expect(201);
    for (const stream of streams) {
      let text = '';
      for (let chunk = await stream?.read(); chunk?.value; chunk = await stream?.read())
        text += Buffer.from(chunk.value);
      expect(text).not.toContain('tollgate.key.created');
    }
  });

  describe('renewal', () => {
    it('takes a scope away with the group, within five minutes', async () => {
      const { provider, management } = gateway;
      const browser = await gateway.signIn('alice');
      provider.people.set('alice', { groups: ['support'] });
      expect((await whoami(browser)).body.scopes).toEqual(SCOPES);
      management.clock.advance(5 * MINUTE_MS);
      // The clock of the other replica stands still: the session is in the database.
      expect((await whoami(browser)).body.scopes).not.toContain('keys:write');
      expect((await whoami(browser, gateway.otherOrigin)).body.scopes).not.toContain('keys:write');
    });

    it('ends the session of a person in no group of the map', async () => {
      const { provider, management } = gateway;
      const browser = await gateway.signIn('alice');
      provider.people.set('alice', { groups: [] });
      management.clock.advance(5 * MINUTE_MS);
      expect((await whoami(browser)).status).toBe(401);
      expect((await whoami(browser, gateway.otherOrigin)).status).toBe(401);
    });

    it('is made by one of the requests that come at once', async () => {
      const { provider, management } = gateway;
      const browser = await gateway.signIn('alice');
      management.clock.advance(5 * MINUTE_MS);
      provider.requests.length = 0;
      const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await whoami(browser)).status));
      expect(statuses).toEqual([200, 200, 200, 200]);
      expect(provider.requests.filter((request) => request === 'POST /token')).toHaveLength(1);
    });

    it('lets sessions go on while the provider is away, and no one sign in', async () => {
      const { provider, management, origin } = gateway;
      const browser = await gateway.signIn('alice');
      const other = new TestBrowser();
      const callback = await callbackOf(other);
      provider.isDown = true;
      management.clock.advance(5 * MINUTE_MS);
      expect((await whoami(browser)).body.scopes).toEqual(SCOPES);
      const response = await other.request(callback);
      expect(reasonOf(response)).toBe('provider_unavailable');
      expect(response.headers.get('Location')).toContain(`requestId=${response.headers.get('X-Request-Id')}`);
      provider.isDown = false;
      provider.people.set('alice', { groups: [] });
      management.clock.advance(MINUTE_MS);
      expect((await whoami(browser)).status).toBe(401);
      expect(origin).toBeDefined();
    });

    it('accepts no session that was ended while the provider was waited for', async () => {
      const { provider, management } = gateway;
      const browser = await gateway.signIn('alice');
      const { sessionId } = (await whoami(browser)).body;
      management.clock.advance(5 * MINUTE_MS);
      provider.isDown = true;
      provider.whileAway = () => management.send('delete', `/tollgate/session/${sessionId}`);
      try {
        expect((await whoami(browser)).status).toBe(401);
      } finally {
        provider.isDown = false;
        provider.whileAway = undefined;
      }
    });

    it('does not outlast the hours of a session', async () => {
      const browser = await gateway.signIn('alice');
      for (let minutes = 0; minutes < 480; minutes += 240) {
        expect((await whoami(browser)).status).toBe(200);
        gateway.management.clock.advance(240 * MINUTE_MS);
      }
      expect((await whoami(browser)).status).toBe(401);
    });
  });

  describe('an attacker', () => {
    it('can replay neither a code nor the whole callback', async () => {
      const browser = new TestBrowser();
      const callback = await callbackOf(browser);
      const attempt = browser.cookiesOf(gateway.origin);
      expect((await browser.request(callback)).headers.get('Location')).toBe('/tollgate/console');
      expect(reasonOf(await browser.request(callback))).toBe('not_started');
      const replayed = await fetch(callback, { redirect: 'manual', headers: { Cookie: attempt } });
      expect(reasonOf(replayed)).toBe('provider_rejected');
    });

    it('can not use the state of another browser', async () => {
      const [victim, attacker] = [new TestBrowser(), new TestBrowser()];
      const stolen = await callbackOf(victim);
      expect(reasonOf(await attacker.request(stolen))).toBe('not_started');
      await callbackOf(attacker);
      expect(reasonOf(await attacker.request(stolen))).toBe('response_invalid');
    });

    it.each([
      ['another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.example.com')],
      ['no issuer', (url: URL) => url.searchParams.delete('iss')],
      ['another state', (url: URL) => url.searchParams.set('state', 'x')],
      ['two states', (url: URL) => url.searchParams.append('state', 'x')],
    ])('gets nowhere with %s in the callback', async (_what, change) => {
      const browser = new TestBrowser();
      const url = new URL(await callbackOf(browser));
      change(url);
      expect(reasonOf(await browser.request(url.href))).toBe('response_invalid');
      expect(browser.cookiesOf(gateway.origin)).not.toContain(`${COOKIE}=`);
    });

    it.each([
      'https://evil.example.com/tollgate/console',
      '//evil.example.com/tollgate/console',
      '/\\evil.example.com/tollgate/console',
      '/tollgate/console/../../evil',
      '/tollgate/consoles',
      'javascript:alert(1)',
      '/%2f/evil.example.com',
    ])('can not have the browser sent to %s', async (place) => {
      const browser = new TestBrowser();
      const callback = await callbackOf(browser, `/tollgate/sign-in?return=${encodeURIComponent(place)}`);
      expect((await browser.request(callback)).headers.get('Location')).toBe('/tollgate/console');
    });

    it.each([
      ['x', `/tollgate/console?q=${'x'.repeat(2000)}`],
      ['é', '/tollgate/console'],
      ['"', '/tollgate/console'],
      ['\\', '/tollgate/console'],
    ])('can not make the cookie too long by 2000 times %s in a page to return to', async (text, place) => {
      const browser = new TestBrowser();
      const page = encodeURIComponent(`/tollgate/console?q=${text.repeat(2000)}`);
      const callback = await callbackOf(browser, `/tollgate/sign-in?return=${page}`);
      expect(browser.cookiesOf(gateway.origin).length).toBeLessThanOrEqual(4096);
      expect((await browser.request(callback)).headers.get('Location')).toBe(place);
    });

    it('gets no session from an attempt that is too old', async () => {
      const browser = new TestBrowser();
      const callback = await callbackOf(browser);
      gateway.management.clock.advance(11 * MINUTE_MS);
      expect(reasonOf(await browser.request(callback))).toBe('not_started');
    });

    it.each([
      ['a form of another origin', { Origin: 'https://evil.example.com' }],
      ['a sandboxed page', { Origin: 'null' }],
      ['a page of another port', { Origin: 'http://127.0.0.1:1' }],
      ['a request without Origin', { Origin: undefined }],
      ['a form of the same origin', { 'Tollgate-Console': undefined }],
      ['a page of the same site', { 'Sec-Fetch-Site': 'same-site' }],
    ])('can not use the cookie by %s', async (_what, changed) => {
      const browser = await gateway.signIn();
      const sent = {
        Origin: gateway.origin,
        'Tollgate-Console': '1',
        Cookie: browser.cookiesOf(gateway.origin),
        ...changed,
      };
      const headers = Object.entries(sent).filter((each): each is [string, string] => each[1] !== undefined);
      const response = await fetch(`${gateway.origin}/consumer-api-key/create`, {
        method: 'POST',
        headers: [...headers, ['Content-Type', 'application/json']],
        body: '{"name":"forged"}',
      });
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ code: 'origin_not_allowed' });
    });

    it('can not have a browser read with the cookie by a link or an image', async () => {
      const browser = await gateway.signIn();
      const response = await fetch(`${gateway.origin}/consumer-api-key`, {
        headers: { Cookie: browser.cookiesOf(gateway.origin) },
      });
      expect(response.status).toBe(403);
    });

    it('can not present the secret of a cookie as a bearer token', async () => {
      const browser = await gateway.signIn();
      const secret = browser.cookiesOf(gateway.origin).replace(`${COOKIE}=`, '');
      const response = await fetch(`${gateway.origin}/tollgate/whoami`, {
        headers: { Authorization: `Bearer ${secret}` },
      });
      expect(response.status).toBe(401);
    });

    it('can not hide behind the cookie: Authorization decides', async () => {
      const browser = await gateway.signIn();
      const { secret } = await gateway.management.createToken({ scopes: ['keys:read'] });
      const headers = { Authorization: `Bearer ${secret}` };
      expect(await (await gateway.call(browser, '/tollgate/whoami', { headers })).json()).toMatchObject({
        type: 'token',
      });
      const wrong = { Authorization: 'Basic YTpi' };
      expect((await gateway.call(browser, '/tollgate/whoami', { headers: wrong })).status).toBe(401);
    });

    it('can not have two cookies taken for one', async () => {
      const browser = await gateway.signIn();
      const cookies = browser.cookiesOf(gateway.origin);
      const headers = { Cookie: `${cookies}; ${cookies}` };
      expect((await gateway.call(browser, '/tollgate/whoami', { headers })).status).toBe(400);
    });
  });

  it('accepts a signing key that is new since the last sign-in', async () => {
    await gateway.signIn();
    await gateway.provider.rotateKeys('second');
    const browser = await gateway.signIn();
    expect((await whoami(browser)).status).toBe(200);
  });

  it('says nothing secret in its log and its responses', async () => {
    const browser = new TestBrowser();
    const callback = await callbackOf(browser);
    const response = await browser.request(callback);
    const code = new URL(callback).searchParams.get('code') ?? '';
    const text = gateway.management.lines.join('') + JSON.stringify([...response.headers]);
    expect(code).not.toBe('');
    expect(text).not.toContain(code);
    expect(text).not.toContain(CLIENT_SECRET);
  });
});

describe('Sign-in with a provider that has fewer features', () => {
  it('keeps the refresh token that it got before the userinfo endpoint was away', async () => {
    const gateway = await startSignIn({ claimsInUserInfo: true });
    try {
      const browser = await gateway.signIn();
      const { provider, management } = gateway;
      const whoami = async () => (await gateway.call(browser, '/tollgate/whoami')).status;
      provider.awayPath = '/me';
      management.clock.advance(5 * MINUTE_MS);
      expect(await whoami()).toBe(200);
      provider.awayPath = undefined;
      provider.requests.length = 0;
      management.clock.advance(30_000);
      expect(await whoami()).toBe(200);
      expect(provider.requests).toEqual(['POST /token', 'GET /me']);
    } finally {
      await gateway.stop();
    }
  });

  it('reads groups from the userinfo endpoint, and again at the renewal without refresh tokens', async () => {
    const gateway = await startSignIn({ claimsInUserInfo: true, withoutRefreshTokens: true });
    try {
      const browser = await gateway.signIn();
      const whoami = () => gateway.call(browser, '/tollgate/whoami');
      gateway.management.clock.advance(5 * MINUTE_MS);
      expect(await (await whoami()).json()).toMatchObject({ name: 'Alice Example', scopes: SCOPES });
      gateway.provider.people.set('alice', { groups: [] });
      gateway.management.clock.advance(5 * MINUTE_MS);
      expect((await whoami()).status).toBe(401);
    } finally {
      await gateway.stop();
    }
  });
});
