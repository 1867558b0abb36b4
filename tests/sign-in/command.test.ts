import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { runCommand } from '../../src/cli/run-command.ts';
import { runInProcess } from '../cli/support/run-in-process.ts';
import { startManagement } from '../management/start-management.ts';
import { startSignIn, type TestSignIn } from './start-sign-in.ts';
import { TestBrowser } from './test-provider.ts';

const SECRET = /tgs_\w{36}/;
let directory: string;
let file: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-sign-in-'));
  file = join(directory, 'contexts.json');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const tollgate = (...words: readonly string[]) => runInProcess(words, { TOLLGATE_CONTEXTS: file });
const tokenOf = async (name: string): Promise<string> =>
  JSON.parse(await readFile(file, 'utf8')).contexts[name].token;

/** Runs `tollgate login --sso`, and does as the person does who reads the address that it shows. */
async function login(
  url: string,
  signIn: (address: string, shown: string) => Promise<unknown>,
  ...words: readonly string[]
) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const written = text(stdout);
  const address = Promise.withResolvers<string>();
  let shown = '';
  stderr.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk;
    const [, found] = /(?:or open|of this machine, at) (\S+)/.exec(shown) ?? [];
    if (found !== undefined) address.resolve(found);
  });
  const ended = runCommand(['login', url, '--sso', '--no-browser', ...words], {
    environment: { HOME: '/nonexistent', TOLLGATE_CONTEXTS: file },
    stdin: stdin as unknown as NodeJS.ReadStream,
    stdout: stdout as unknown as NodeJS.WriteStream,
    stderr: stderr as unknown as NodeJS.WriteStream,
  });
  const first = await Promise.race([ended, address.promise]);
  if (typeof first === 'string') await signIn(first, shown);
  const code = await ended;
  stdout.end();
  return { code, stdout: await written, stderr: shown };
}

describe('tollgate login --sso at a provider with device authorization', () => {
  let gateway: TestSignIn;
  beforeAll(async () => {
    gateway = await startSignIn({ deviceFlow: 'for the client' });
  });
  afterAll(() => gateway.stop());

  const signInAs = (person: string) => async (address: string) => {
    gateway.provider.current = person;
    await new TestBrowser().submitForms(address);
  };

  it('opens a session of 8 hours for whom the code is confirmed on any device', async () => {
    const { code, stdout, stderr } = await login(gateway.origin, async (address, shown) => {
      expect(shown).toContain(`Open ${gateway.provider.issuer}/device and enter the code `);
      await signInAs('alice')(address);
    });
    expect([code, stdout]).toEqual([0, '']);
    const endsAt = new Date(gateway.management.clock.nowMs() + 8 * 3_600_000).toISOString().slice(0, 19);
    expect(stderr).toContain(`You are signed in as Alice Example until ${endsAt}Z.`);
    expect(stderr).not.toMatch(SECRET);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await tokenOf('default')).toMatch(SECRET);
    expect(JSON.parse((await tollgate('whoami', '-o', 'json')).stdout)).toMatchObject({
      ...{ type: 'person', subject: 'alice', sessionId: expect.stringMatching(/^ses_/) },
    });
  });

  it('ends the session of the same context before it, and its own with tollgate logout', async () => {
    const { origin, management } = gateway;
    await login(origin, signInAs('alice'), '--name', 'one');
    const first = await tokenOf('one');
    await login(origin, signInAs('alice'), '--name', 'one');
    const second = await tokenOf('one');
    expect((await management.sendAs(first, 'get', '/tollgate/whoami')).status).toBe(401);
    expect((await management.sendAs(second, 'get', '/tollgate/whoami')).status).toBe(200);
    expect((await tollgate('logout', '--name', 'one')).code).toBe(0);
    expect((await management.sendAs(second, 'get', '/tollgate/whoami')).status).toBe(401);
    expect(JSON.parse((await tollgate('context', 'list', '-o', 'json')).stdout)).toEqual([]);
    expect((await tollgate('logout', '--name', 'one')).code).toBe(4);
  });

  it('keeps the session of a context whose secret is given to another login', async () => {
    await login(gateway.origin, signInAs('alice'), '--name', 'same');
    const secrets = join(directory, 'secret');
    await writeFile(secrets, await tokenOf('same'));
    const words = ['login', gateway.origin, '--name', 'same', '--token-file', secrets];
    expect((await tollgate(...words)).code).toBe(0);
    expect((await tollgate('whoami', '--context', 'same')).code).toBe(0);
  });

  it('removes a context whose gateway is gone, and says that its session goes on', async () => {
    await login(gateway.origin, signInAs('alice'), '--name', 'gone');
    const kept = JSON.parse(await readFile(file, 'utf8'));
    kept.contexts.gone.url = 'http://127.0.0.1:1';
    await writeFile(file, JSON.stringify(kept));
    const { code, stderr } = await tollgate('logout', '--name', 'gone');
    expect([code, stderr]).toEqual([75, expect.stringContaining('The session was not ended')]);
    expect(await readFile(file, 'utf8')).not.toMatch(SECRET);
  });

  it('says so when the session has ended', async () => {
    const { origin, management } = gateway;
    await login(origin, signInAs('alice'));
    const headers = await management.sendAs(await tokenOf('default'), 'delete', '/tollgate/session/current');
    expect(headers.status).toBe(200);
    for (const words of [
      ['keys', 'list'],
      ['events', '--follow'],
    ]) {
      const { code, stderr } = await tollgate(...words);
      expect([code, stderr]).toEqual([3, `Your session has ended: run tollgate login ${origin} --sso\n`]);
    }
  });

  it('names the context whose session has ended, so that the next login is with that one', async () => {
    const { origin, management } = gateway;
    await login(origin, signInAs('alice'), '--name', 'production');
    await login(origin, signInAs('alice'));
    const kept = await tokenOf('default');
    const ended = await tokenOf('production');
    expect((await management.sendAs(ended, 'delete', '/tollgate/session/current')).status).toBe(200);
    const { stderr } = await tollgate('whoami', '--context', 'production');
    const [, options = ''] = /run tollgate login \S+ --sso(.*)\n/.exec(stderr) ?? [];
    await login(origin, signInAs('alice'), ...options.split(' ').slice(1));
    expect(await tokenOf('default')).toBe(kept);
    for (const name of ['default', 'production'])
      expect((await tollgate('whoami', '--context', name)).code).toBe(0);
  });

  it('tells people of one name apart in the audit log, and from the root token', async () => {
    const { origin, management, provider } = gateway;
    const namesake = { name: 'root', groups: ['admins'] };
    provider.people.set('ann', { ...namesake, email: 'ann@example.com', email_verified: true });
    provider.people.set('ben', namesake);
    for (const person of ['ann', 'ben']) await login(origin, signInAs(person));
    const token = { name: 'root', scopes: ['keys:write'] };
    const { body } = await management.send('post', '/tollgate/admin-token/create', token).expect(201);
    const { body: key } = await management
      .sendAs(body.secret, 'post', '/consumer-api-key/create', { name: 'of a token' })
      .expect(201);
    const actorsOf = async (...words: readonly string[]) => {
      const { stdout } = await tollgate('audit', ...words, '-o', 'csv', '--no-headers');
      return stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => {
          const cells = line.split(',');
          return [cells[3], cells.at(-1)].join();
        });
    };
    const signedIn = await actorsOf('--action', 'session.create');
    expect(signedIn.slice(0, 2)).toEqual(['root <ben>,person', 'root <ann@example.com>,person']);
    expect(await actorsOf('--target', body.adminTokenId)).toEqual(['root,root']);
    expect(await actorsOf('--target', key.id)).toEqual(['root,token']);
  });

  it('does not begin a sign-in where the contexts can not be read', async () => {
    await writeFile(file, JSON.stringify({ contexts: {} }), { mode: 0o644 });
    const { length } = gateway.provider.requests;
    const { code, stderr } = await login(gateway.origin, signInAs('alice'));
    expect([code, stderr]).toEqual([1, expect.stringContaining(`run chmod 600 ${file}`)]);
    expect(gateway.provider.requests).toHaveLength(length);
  });

  it('leaves no session where the context can not be written', async () => {
    const { management, origin } = gateway;
    gateway.provider.people.set('sue', { name: 'Sue', groups: ['admins'] });
    await writeFile(file, '');
    file = join(file, 'contexts.json');
    const { code, stderr } = await login(origin, signInAs('sue'));
    expect([code, stderr]).toEqual([1, expect.stringContaining('contexts.json can not be written')]);
    const { body } = await management.send('get', '/tollgate/session');
    const subjects = body.sessions.map(({ subject }: { subject: string }) => subject);
    expect(subjects).not.toContain('sue');
    const { body: log } = await management.send('get', '/tollgate/audit-log?action=session.end');
    expect(log.entries[0]).toMatchObject({ actor: { subject: 'sue' } });
  });

  it('keeps nothing for a person to whom the map grants nothing', async () => {
    gateway.provider.people.set('nick', { name: 'Nick', groups: ['others'] });
    const { code, stderr } = await login(gateway.origin, signInAs('nick'));
    expect([code, stderr]).toEqual([3, expect.stringContaining('grants you nothing here')]);
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });
});

describe('tollgate login --sso at another provider', () => {
  let gateway: TestSignIn;
  beforeAll(async () => {
    gateway = await startSignIn();
  });
  afterAll(() => gateway.stop());

  it('takes the response of the provider at the loopback address, and no other one', async () => {
    const { code, stderr } = await login(gateway.origin, async (address) => {
      gateway.provider.current = 'alice';
      const browser = new TestBrowser();
      const { url } = await browser.open(
        address,
        (next) => next.startsWith('http://127.0.0.1:') && next.includes('/callback?'),
      );
      const forged = new URL(url);
      forged.searchParams.set('state', 'x');
      expect((await fetch(forged)).status).toBe(404);
      expect((await fetch(new URL('/callback', url))).status).toBe(404);
      expect((await fetch(url, { method: 'POST' })).status).toBe(404);
      expect((await fetch(url.replace('127.0.0.1', 'localhost'))).status).toBe(404);
      // No address that a URL can have a path of.
      expect((await fetch(`${new URL(url).origin}//`)).status).toBe(404);
      const response = await fetch(url);
      expect([response.status, response.headers.get('Referrer-Policy')]).toEqual([200, 'no-referrer']);
      expect(await response.text()).toContain('You can close this page');
    });
    expect([code, stderr]).toEqual([0, expect.stringContaining('You are signed in as Alice Example until ')]);
    expect(JSON.parse((await tollgate('whoami', '-o', 'json')).stdout)).toMatchObject({ type: 'person' });
  });

  const send = async (
    path: string,
    body: object,
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const response = await fetch(`${gateway.origin}/tollgate/sign-in/command${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  it.each([
    'https://evil.example.com/callback',
    'http://127.0.0.1.evil.example.com:80/callback',
    'http://localhost:80/callback',
    'http://127.0.0.1:80/callback?x',
    'http://evil@127.0.0.1:80/callback',
    'http://127.0.0.1:0/callback',
    'http://127.0.0.1:65536/callback',
    'http://[::1]:99999/callback',
  ])('can not have codes sent to %s', async (redirectUri) => {
    expect(await send('', { redirectUri })).toMatchObject({ status: 400, body: { code: 'bad_request' } });
  });

  it('opens no session with the ticket of a browser, of another attempt, or without the code', async () => {
    const { origin, provider } = gateway;
    const redirectUri = 'http://127.0.0.1:1/callback';
    const { body: mine } = await send('', { redirectUri });
    const { body: other } = await send('', { redirectUri });
    const browser = new TestBrowser();
    provider.current = 'alice';
    const { url } = await browser.open(String(mine.url), (next) => next.startsWith(redirectUri));
    const { search: query } = new URL(url);
    await browser.open(`${origin}/tollgate/sign-in`, (next) => next.startsWith(provider.issuer));
    const [, ofBrowser] = /sign-in=([^;]+)/.exec(browser.cookiesOf(origin)) ?? [];
    for (const ticket of [ofBrowser, other.ticket, 'x', ''])
      expect(await send('/finish', { ticket, query })).toMatchObject({
        ...{ status: 403, body: { code: 'sign_in_rejected' } },
      });
    expect((await send('/finish', { ticket: mine.ticket })).status).toBe(403);
    expect((await send('/finish', { ticket: mine.ticket, query: 7 })).status).toBe(400);
    const { body: session } = await send('/finish', { ticket: mine.ticket, query });
    expect(session.secret).toMatch(SECRET);
    expect((await send('/finish', { ticket: mine.ticket, query })).status).toBe(403);
    // The secret of a command is none of a browser.
    const headers = { Cookie: `__Host-tollgate=${session.secret}`, 'Tollgate-Console': '1', Origin: origin };
    expect((await fetch(`${origin}/tollgate/whoami`, { headers })).status).toBe(401);
  });
});

it('tollgate login --sso opens a browser where the client may not use device authorization', async () => {
  const gateway = await startSignIn({ deviceFlow: 'for other clients' });
  try {
    const { code, stderr } = await login(gateway.origin, (address) => new TestBrowser().open(address));
    expect([code, stderr]).toEqual([0, expect.stringContaining('You are signed in as Alice Example until ')]);
    expect(gateway.provider.requests).toContain('POST /device/auth');
  } finally {
    await gateway.stop();
  }
});

it('tollgate login --sso says so where the gateway has no identity provider', async () => {
  const management = await startManagement();
  try {
    const { code, stderr } = await tollgate(
      'login',
      `http://127.0.0.1:${await management.listen()}`,
      '--sso',
    );
    expect([code, stderr]).toEqual([4, expect.stringContaining('The gateway has no identity provider')]);
  } finally {
    await management.stop();
  }
});
