import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { DOCUMENTED_ENDPOINTS, ENDPOINTS } from '../../src/management/endpoints.ts';
import { SCOPES } from '../../src/permissions/scopes.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { digestOfSecret } from '../../src/secrets/secret-digest.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { parseScopesMap } from '../../src/sign-in/scopes-map.ts';
import { rotateSealedSessions } from '../../src/sign-in/sealed-session.ts';
import { ROOT_TOKEN, startManagement } from '../management/start-management.ts';
import { ENCRYPTION_KEY } from '../support/gateway.ts';
import type { TestSettings } from '../support/in-process-gateway.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';
import { startSignIn, type TestSignIn } from './start-sign-in.ts';
import type { TestBrowser } from './test-provider.ts';

const MINUTE_MS = 60_000;

let gateway: TestSignIn;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-console-'));
  await writeFile(join(directory, 'index.html'), '<head></head>');
  gateway = await startSignIn({ settings: { rootTokenSignIn: 'off' }, consoleDirectory: directory });
});
afterAll(async () => {
  await gateway?.stop();
  await rm(directory, { recursive: true, force: true });
});

beforeEach(() => {
  gateway.provider.people.set('alice', { name: 'Alice', groups: ['admins'] });
});

const post = (browser: TestBrowser, path: string, body: object, headers = {}) =>
  gateway.call(browser, path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

async function createKey(browser: TestBrowser): Promise<string> {
  const response = await post(browser, '/consumer-api-key/create', { name: 'a key' });
  return ((await response.json()) as { id: string }).id;
}

describe('Every request with the cookie of a session', () => {
  it.each([
    ['of another origin', { Origin: 'https://evil.example.com' }],
    ['without the header of the console', { 'Tollgate-Console': undefined }],
  ])('%s is rejected, whatever its method and its path are', async (_what, changed) => {
    const browser = await gateway.signIn();
    const sent = {
      ...{ Cookie: browser.cookiesOf(gateway.origin), Origin: gateway.origin, 'Tollgate-Console': '1' },
      ...changed,
    };
    const headers = Object.entries(sent).filter((each): each is [string, string] => each[1] !== undefined);
    expect(ENDPOINTS.length).toBeGreaterThan(50);
    const managed = DOCUMENTED_ENDPOINTS.filter(
      (endpoint) => ENDPOINTS.includes(endpoint) || endpoint.path.startsWith('/tollgate/session'),
    );
    for (const { method, path } of managed) {
      const url = `${gateway.origin}${path.replaceAll(/\{\w+\}/g, 'x')}`;
      const response = await fetch(url, { method: method.toUpperCase(), headers });
      expect([method, path, response.status, await response.json()]).toEqual([
        ...[method, path, 403],
        expect.objectContaining({ code: 'origin_not_allowed' }),
      ]);
    }
    expect((await gateway.call(browser, '/tollgate/whoami')).status).toBe(200);
  });
});

describe('ROOT_TOKEN_SIGN_IN=off', () => {
  it('takes the root token out of browsers, and out of nothing else', async () => {
    const headers = { Authorization: `Bearer ${ROOT_TOKEN}` };
    const whoami = (more = {}) =>
      fetch(`${gateway.origin}/tollgate/whoami`, { headers: { ...headers, ...more } });
    const sites = ['same-origin', 'none', 'cross-site'].map((site) => ({ 'Sec-Fetch-Site': site }));
    // Without TLS browsers leave out the former.
    for (const ofBrowser of [...sites, { 'Tollgate-Console': '1' }]) {
      const response = await whoami(ofBrowser);
      expect([response.status, await response.json()]).toEqual([
        403,
        expect.objectContaining({ code: 'root_token_off' }),
      ]);
    }
    expect((await whoami()).status).toBe(200);
    const { secret } = await gateway.management.createToken();
    const ofToken = { Authorization: `Bearer ${secret}`, 'Sec-Fetch-Site': 'same-origin' };
    expect((await whoami(ofToken)).status).toBe(200);
  });
});

describe('The page of the console', () => {
  it('names the provider, and says that the root token is off and whether there is a cookie', async () => {
    const { origin, provider } = gateway;
    const tagOf = async (headers = {}) => (await fetch(`${origin}/tollgate/console`, { headers })).text();
    const tag = `name="tollgate-sign-in" content="${new URL(provider.issuer).host}"`;
    expect(await tagOf()).toContain(`${tag} data-session="false" data-root-token="off"`);
    const browser = await gateway.signIn();
    expect(await tagOf({ Cookie: browser.cookiesOf(origin) })).toContain(`${tag} data-session="true"`);
  });
});

describe('A stream of events', () => {
  const open = async (browser: TestBrowser) => {
    const response = await gateway.call(browser, '/tollgate/events?type=tollgate.key.*');
    expect(response.status).toBe(200);
    const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    await chunks?.read();
    /** What comes until the next event, or until the end: then there is nothing of an event in it. */
    return async () => {
      let text = '';
      for (;;) {
        const { done, value } = (await chunks?.read()) ?? { done: true, value: undefined };
        text += value ?? '';
        if (done || text.includes('data: ')) return text;
      }
    };
  };

  it('ends with the session of the person who opened it', async () => {
    const [browser, other] = [await gateway.signIn(), await gateway.signIn()];
    const next = await open(browser);
    const first = await createKey(other);
    expect(await next()).toContain(first);
    await gateway.call(browser, '/tollgate/session/current', { method: 'DELETE' });
    await createKey(other);
    expect(await next()).not.toContain('data: ');
  });
});

describe('A change of many keys', () => {
  const disableKeys = async (browser: TestBrowser, ids: readonly string[]) => {
    const response = await post(browser, '/api-keys/bulk', { ids, action: 'disable' });
    expect(response.status).toBe(201);
    return ((await response.json()) as { jobId: string }).jobId;
  };
  const disable = async (browser: TestBrowser) =>
    disableKeys(browser, [await createKey(browser), await createKey(browser)]);
  const ended = async (jobId: string) => {
    const show = async () => (await gateway.management.send('get', `/tollgate/job/${jobId}`)).body;
    await until(async () => !['waiting', 'running'].includes((await show()).state));
    return show();
  };

  it('is made by the person who began it, and by no one once that person has no session', async () => {
    const { provider, management } = gateway;
    provider.people.set('bob', { name: 'Bob', groups: ['admins'] });
    const before = await gateway.signIn('bob');
    const stopped = await disable(before);
    await gateway.call(before, '/tollgate/session/current', { method: 'DELETE' });
    management.startJobs();
    expect(await ended(stopped)).toMatchObject({ done: 0 });
    const jobId = await disable(await gateway.signIn('bob'));
    expect(await ended(jobId)).toMatchObject({ state: 'done', done: 2 });
    const { body } = await management.send('get', `/tollgate/audit-log?jobId=${jobId}&action=key.update`);
    expect(body.entries).toHaveLength(2);
    for (const { actor } of body.entries) expect(actor).toMatchObject({ type: 'person', subject: 'bob' });
  });

  it('changes no key after the session of its author has ended', async () => {
    const { provider, management } = gateway;
    provider.people.set('carol', { name: 'Carol', groups: ['admins'] });
    const browser = await gateway.signIn('carol');
    const ids = [await createKey(browser), await createKey(browser), await createKey(browser)];
    management.startJobs();
    const lock = sql`SELECT FROM consumer_keys WHERE id = ${ids[1]} FOR UPDATE`;
    // The job waits for this lock in the middle of its second key.
    const jobId = await management.records.db.transaction().execute(async (transaction) => {
      await lock.execute(transaction);
      const begun = await disableKeys(browser, ids);
      await until(async () => (await waitingForLocks(management.records.db)) > 0);
      await gateway.call(browser, '/tollgate/session/current', { method: 'DELETE' });
      return begun;
    });
    expect(await ended(jobId)).toMatchObject({ state: 'stopped', total: 3, done: 1, failedCount: 0 });
    const { body } = await management.send('get', `/tollgate/audit-log?jobId=${jobId}&action=key.update`);
    const changed = body.entries.map(({ target }: { target: { id: string } }) => target.id);
    expect(changed).toEqual([ids[0]]);
  });
});

describe('A session', () => {
  it('is sealed with the new encryption key by its rotation, and goes on', async () => {
    const browser = await gateway.signIn();
    const { records } = gateway.management;
    const newKey = Buffer.alloc(32, 8);
    const both = new SecretVault([newKey, Buffer.from(ENCRYPTION_KEY, 'base64')], systemRandom);
    expect(await rotateSealedSessions(records.sessions, both, () => {})).toBeGreaterThan(0);
    expect(await rotateSealedSessions(records.sessions, both, () => {})).toBe(0);
    expect((await gateway.call(browser, '/tollgate/whoami')).status).toBe(401);
    const secret = browser.cookiesOf(gateway.origin).replace('__Host-tollgate=', '');
    const alone = new SecretVault([newKey], systemRandom);
    const found = await records.sessions.findByLookup(alone.digestLookups(digestOfSecret(secret)));
    expect(found?.session).toMatchObject({ subject: 'alice' });
    const back = new SecretVault([Buffer.from(ENCRYPTION_KEY, 'base64'), newKey], systemRandom);
    expect(await rotateSealedSessions(records.sessions, back, () => {})).toBeGreaterThan(0);
    gateway.management.clock.advance(5 * MINUTE_MS);
    expect(await (await gateway.call(browser, '/tollgate/whoami')).json()).toMatchObject({ scopes: SCOPES });
  });

  /** The management interface of a replica with these settings, five minutes later, and headers of the browser's session. */
  async function fiveMinutesLater(browser: TestBrowser, settings: TestSettings) {
    const { management, provider, origin } = gateway;
    const later = await startManagement({
      records: management.records,
      startMs: management.clock.nowMs() + 5 * MINUTE_MS,
      settings: {
        ...{ oidcIssuer: new URL(provider.issuer), oidcClientId: 'tollgate', publicAdminUrl: origin },
        oidcClientSecret: 'the-secret-of-the-client-that-no-log-may-have',
        ...settings,
      },
    });
    const headers = { Cookie: browser.cookiesOf(origin), Origin: origin, 'Tollgate-Console': '1' };
    return { later, headers };
  }

  it('that is renewed under the new encryption key is found under that alone', async () => {
    const browser = await gateway.signIn();
    const [newKey, oldKey] = [Buffer.alloc(32, 6), Buffer.from(ENCRYPTION_KEY, 'base64')];
    const { sessions } = gateway.management.records;
    const { later, headers } = await fiveMinutesLater(browser, {
      ...{ oidcScopesMap: parseScopesMap('{"admins": ["support"]}'), encryptionKeys: [newKey, oldKey] },
    });
    try {
      await later.bare('get', '/tollgate/whoami').set(headers).expect(200);
      await rotateSealedSessions(sessions, new SecretVault([newKey, oldKey], systemRandom), () => {});
      const digest = digestOfSecret(headers.Cookie.replace('__Host-tollgate=', ''));
      const alone = new SecretVault([newKey], systemRandom);
      expect(await sessions.findByLookup(alone.digestLookups(digest))).toBeDefined();
    } finally {
      await later.stop();
      await rotateSealedSessions(sessions, new SecretVault([oldKey, newKey], systemRandom), () => {});
    }
  });

  it('loses at its renewal what a map that was changed since no longer grants', async () => {
    const browser = await gateway.signIn();
    const { later, headers } = await fiveMinutesLater(browser, {
      oidcScopesMap: parseScopesMap('{"admins": ["support"]}'),
    });
    try {
      const { body } = await later.bare('get', '/tollgate/whoami').set(headers).expect(200);
      expect(body.scopes).not.toContain('keys:write');
      await later.bare('delete', '/consumer-api-key/x').set(headers).expect(403);
    } finally {
      await later.stop();
    }
  });
});
