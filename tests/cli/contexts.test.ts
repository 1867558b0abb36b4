import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { changeContexts } from '../../src/cli/api/contexts-file.ts';
import { CommandFault } from '../../src/cli/command-fault.ts';
import { Admin } from '../support/admin.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { runInProcess } from './support/run-in-process.ts';
import { type EndedCommand, runOnTerminal, runTollgate, WITH_FULL_DISK } from './support/run-tollgate.ts';

let fleet: Fleet;
let url: string;
let directory: string;
let file: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-cli-'));
  fleet = await startInProcessFleet(1);
  url = fleet.replicas[0]?.url ?? '';
  file = join(directory, 'config', 'contexts.json');
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(() => rm(join(directory, 'config'), { recursive: true, force: true }));

function tollgate(words: readonly string[], input = '', environment = {}): Promise<EndedCommand> {
  return runInProcess(words, { TOLLGATE_CONTEXTS: file, ...environment }, input);
}

const NO_TOKEN = expect.stringContaining('The token is empty, or has characters that no token has.');

describe('tollgate login', () => {
  it('keeps a token that works in a file for its owner alone, and shows it nowhere', async () => {
    const { code, stdout, stderr } = await tollgate(['login', url], `${ROOT_TOKEN}\n`);
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain(ROOT_TOKEN);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(directory, 'config'))).mode & 0o777).toBe(0o700);
    expect(JSON.parse((await tollgate(['whoami'])).stdout)).toMatchObject({ type: 'root' });
  });

  it('keeps no token that does not work', async () => {
    expect((await tollgate(['login', url], 'wrong')).code).toBe(3);
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });

  it.each([
    ['two lines', 'a-secret\n# second line'],
    ['a typographic quote', '“a-secret”'],
    ['an escape', '\u001b[200~a-secret'],
  ])('shows no token that has %s', async (_what, token) => {
    for (const [input, environment] of [
      [token, {}],
      ['', { TOLLGATE_TOKEN: token }],
    ] as const) {
      const { code, stdout, stderr } = await tollgate(['login', url], input, environment);
      expect([code, stdout, stderr]).toEqual([3, expect.not.stringContaining('a-secret'), NO_TOKEN]);
    }
  });

  it.each([[['a-secret']], [['--token=a-secret']], [['-ta-secret']]])(
    'repeats no token that is an argument: %j',
    async (words) => {
      const { code, stdout, stderr } = await tollgate(['login', url, ...words], ROOT_TOKEN);
      expect([code, stdout + stderr]).toEqual([64, expect.not.stringContaining('a-secret')]);
      await expect(stat(file)).rejects.toThrow('ENOENT');
    },
  );

  it.each<readonly [string, number, Readonly<Record<string, string>>, string]>([
    ['JSON of another server', 200, { 'content-type': 'application/json' }, '{"status":"ok"}'],
    [
      'JSON of another server with an id',
      200,
      { 'content-type': 'application/json', 'x-request-id': 'a' },
      '{"status":"ok"}',
    ],
    ['a page', 200, { 'content-type': 'text/html' }, '<h1>Welcome</h1>'],
    ['a redirect', 302, { location: '/elsewhere' }, ''],
  ])('keeps no context where the response is %s', async (_what, status, headers, body) => {
    const other = createServer((_req, res) => res.writeHead(status, headers).end(body)).listen(0);
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    try {
      const { code, stderr } = await tollgate(['login', `http://localhost:${port}`], ROOT_TOKEN);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^The (response|address) .* management interface.*\.\n$/);
      await expect(stat(file)).rejects.toThrow('ENOENT');
    } finally {
      other.close();
    }
  });

  it.each([
    ['a fragment', (address: string) => `${address}/#keys`],
    ['an empty fragment', (address: string) => `${address}/#`],
    ['a query', (address: string) => `${address}/?page=2`],
    ['an empty query', (address: string) => `${address}/?`],
    ['a name', (address: string) => address.replace('//', '//admin@')],
    ['a password alone', (address: string) => address.replace('//', '//:word@')],
  ])('sends the token to no address that has %s', async (_what, spell) => {
    const { code, stderr } = await tollgate(['login', spell(url)], ROOT_TOKEN);
    expect([code, stderr]).toEqual([64, 'The address must be like https://gateway.example.com:8081\n']);
  });

  it('names a file that it can not write, and leaves no part of it', async () => {
    const environment = { TOLLGATE_CONTEXTS: file };
    const { code, stderr } = await runTollgate(['login', url], {
      ...{ environment, input: ROOT_TOKEN, shellLine: WITH_FULL_DISK },
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /contexts\.json can not be written \(\w+\): set TOLLGATE_CONTEXTS to keep contexts in another file\.\n$/,
    );
    expect(await readdir(join(directory, 'config'))).toEqual([]);
  });

  it('asks on a terminal for a token that it does not show', async () => {
    const { code, stdout } = await runOnTerminal(['login', url], {
      environment: { TOLLGATE_CONTEXTS: file },
      input: `${ROOT_TOKEN}\n`,
    });
    // What was typed before the command asked is shown by the terminal itself.
    expect(stdout).toContain(`Token for ${url}:`);
    expect(code).toBe(0);
    expect(JSON.parse((await tollgate(['whoami'])).stdout)).toMatchObject({ type: 'root' });
  });

  it('says that the token is that of the variable', async () => {
    const environment = { TOLLGATE_TOKEN: ROOT_TOKEN };
    const { code, stderr } = await tollgate(['login', url], '', environment);
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^The token is that of TOLLGATE_TOKEN\.\n/)]);
    expect(stderr).not.toContain('in place of');
  });

  it('keeps the token of a gateway whose host has the name of the new context', async () => {
    const before = { url: 'https://default', token: 'kept nowhere else' };
    await mkdir(join(directory, 'config'));
    await writeFile(file, JSON.stringify({ current: 'default', contexts: { default: before } }), {
      mode: 0o600,
    });
    const { stderr } = await tollgate(['login', url], ROOT_TOKEN);
    expect(stderr).toMatch('\nWhat was default before is the context default-2 now.\n');
    expect(JSON.parse(await readFile(file, 'utf8')).contexts).toEqual({
      default: { url, token: ROOT_TOKEN },
      'default-2': before,
    });
  });

  it('warns of an address without TLS before it sends the token', async () => {
    const { code, stderr } = await tollgate(['login', `http://0.0.0.0:${await freePort()}`], ROOT_TOKEN);
    expect([code, stderr]).toEqual([
      75,
      expect.stringMatching(/^The address is not https: [^\n]+\n[^\n]+\n$/),
    ]);
  });

  it('keeps a context of another gateway under the name of its host, unless --name replaces it', async () => {
    expect((await tollgate(['login', url], ROOT_TOKEN)).code).toBe(0);
    const other = url.replace('127.0.0.1', 'localhost');
    const { host } = new URL(url);
    const { code, stderr } = await tollgate(['login', other], ROOT_TOKEN);
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(`\nWhat was default before is the context ${host} now.\n$`),
    ]);
    const kept = { url, token: ROOT_TOKEN };
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({
      current: 'default',
      contexts: { default: { ...kept, url: other }, [host]: kept },
    });
    expect((await tollgate(['whoami', '--context', host])).code).toBe(0);
    const named = await tollgate(['login', url, '--name', 'default'], ROOT_TOKEN);
    expect([named.code, named.stderr]).toEqual([0, expect.not.stringContaining('What was')]);
    const { contexts } = JSON.parse(await readFile(file, 'utf8'));
    expect(contexts).toEqual({ default: kept, [host]: kept });
    // The name of its host may be that of another context.
    const otherToken = { url, token: 'another token' };
    await changeContexts(file, () => ({
      current: 'default',
      contexts: { default: otherToken, [host]: kept },
    }));
    expect((await tollgate(['login', other], ROOT_TOKEN)).code).toBe(0);
    expect(JSON.parse(await readFile(file, 'utf8')).contexts).toMatchObject({
      [host]: kept,
      [`${host}-2`]: otherToken,
    });
  });

  it('reads a token from a file', async () => {
    const tokenFile = join(directory, 'token');
    await writeFile(tokenFile, `${ROOT_TOKEN}\n`);
    expect((await tollgate(['login', url, '--token-file', tokenFile])).code).toBe(0);
    const words = ['whoami', '--url', url, '--token-file', tokenFile];
    expect((await runInProcess(words, {})).code).toBe(0);
    expect((await runTollgate([...words, '--token-file', '-'], { input: ROOT_TOKEN })).code).toBe(0);
  });

  it('waits for a token that comes on standard input after the command has begun to read', async () => {
    const notice = `process.stdin.on('newListener', () => process.stderr.write('It reads.'))`;
    const ended = await runTollgate(['whoami', '--url', url, '--token-file', '-'], {
      nodeOptions: ['--import', `data:text/javascript,${encodeURIComponent(notice)}`],
      prompt: 'It reads.',
      input: ROOT_TOKEN,
    });
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining('"root"') });
  });

  it('asks nothing at a terminal whose input ended with the token', async () => {
    const { id } = await new Admin(url).makeKey('asked about');
    const endOfInput = '\u0004';
    const ended = await runOnTerminal(['keys', 'delete', id, '--url', url, '--token-file', '-'], {
      input: `${ROOT_TOKEN}\n${endOfInput}`,
    });
    expect(ended).toMatchObject({ code: 64, stdout: expect.stringContaining('--yes') });
  });

  it.each(['verify', 'keys find'])(
    'reads no secret of %s where the input ended with the token',
    async (words) => {
      const ended = await runOnTerminal([...words.split(' '), '--url', url, '--token-file', '-'], {
        input: `${ROOT_TOKEN}\n\u0004`,
      });
      expect(ended).toMatchObject({ code: 64, stdout: expect.stringContaining('There was no secret') });
    },
  );
});

describe('contexts', () => {
  beforeEach(async () => {
    for (const name of ['one', 'two'])
      expect((await tollgate(['login', url, '--name', name], ROOT_TOKEN)).code).toBe(0);
  });

  it('are listed without their tokens, and one of them is chosen', async () => {
    const { stdout } = await tollgate(['context', 'list']);
    expect(stdout).not.toContain(ROOT_TOKEN);
    expect(JSON.parse(stdout)).toEqual([
      { name: 'one', url, current: false },
      { name: 'two', url, current: true },
    ]);
    expect((await tollgate(['context', 'use', 'one'])).code).toBe(0);
    expect(JSON.parse(await readFile(file, 'utf8')).current).toBe('one');
    for (const name of ['three', '__proto__'])
      expect((await tollgate(['context', 'use', name])).code).toBe(4);
    expect((await tollgate(['whoami', '--context', 'three'])).code).toBe(64);
  });

  it('are said not to be in use where variables come before them', async () => {
    const address = { TOLLGATE_URL: 'http://127.0.0.1:1' };
    const token = { TOLLGATE_TOKEN: 'of-the-other-gateway' };
    const context = { TOLLGATE_CONTEXT: 'two' };
    const tokenFile = join(directory, 'token-beside-variables');
    await writeFile(tokenFile, ROOT_TOKEN);
    for (const [environment, shown] of [
      [{ ...address, ...token }, 'TOLLGATE_URL and TOLLGATE_TOKEN'],
      [{ TOLLGATE_URL: `${url}/`, ...token }, 'TOLLGATE_TOKEN'],
      [{ ...address, ...token, ...context }, 'TOLLGATE_CONTEXT=two'],
    ] as const) {
      const note = `Commands use ${shown} in place of the context one, unless --context names it.\n`;
      for (const words of [
        ['context', 'use', 'one'],
        ['context', 'list'],
      ])
        expect(await tollgate(words, '', environment)).toMatchObject({ code: 0, stderr: note });
      const again = ['login', url, '--name', 'one', '--token-file', tokenFile];
      expect((await tollgate(again, '', environment)).stderr.endsWith(note)).toBe(true);
    }
    for (const environment of [
      {},
      { TOLLGATE_URL: url, TOLLGATE_TOKEN: ROOT_TOKEN },
      { TOLLGATE_CONTEXT: 'one' },
    ])
      expect(await tollgate(['context', 'use', 'one'], '', environment)).toMatchObject({
        code: 0,
        stderr: '',
      });
  });

  it('are left by logout without a name where they are current, and by none where none is', async () => {
    expect((await tollgate(['login', url], ROOT_TOKEN)).code).toBe(0);
    expect((await tollgate(['context', 'use', 'one'])).code).toBe(0);
    expect(await tollgate(['logout'])).toMatchObject({ code: 0, stderr: 'Context one is removed.\n' });
    const { code, stderr } = await tollgate(['logout']);
    expect([code, stderr]).toEqual([4, 'No context is current: name one with --name.\n']);
    expect(Object.keys(JSON.parse(await readFile(file, 'utf8')).contexts)).toEqual(['two', 'default']);
  });

  it('give their token to their own address alone', async () => {
    const { code, stderr } = await tollgate(['whoami', '--url', 'http://127.0.0.1:1', '--retries', '0']);
    expect([code, stderr]).toEqual([3, expect.stringContaining('no token')]);
    const other = { TOLLGATE_URL: 'http://127.0.0.1:1' };
    expect((await tollgate(['whoami', '--retries', '0'], '', other)).code).toBe(3);
    expect((await tollgate(['whoami', '--context', 'one'], '', other)).code).toBe(0);
    expect((await tollgate(['whoami'], '', { ...other, TOLLGATE_CONTEXT: 'one' })).code).toBe(0);
    const token = { TOLLGATE_TOKEN: 'of-the-other-gateway', TOLLGATE_CONTEXT: 'one' };
    expect((await tollgate(['whoami'], '', { ...other, ...token })).code).toBe(0);
  });

  it('go to where a symbolic link leads, and logout leaves no token there', async () => {
    const links = join(directory, 'links');
    await mkdir(links);
    const link = join(links, 'contexts.json');
    // Its folder is made with the file.
    await symlink('../config/kept/contexts.json', link);
    const kept = join(directory, 'config', 'kept', 'contexts.json');
    const environment = { TOLLGATE_CONTEXTS: link };
    expect((await tollgate(['login', url], ROOT_TOKEN, environment)).code).toBe(0);
    expect(await readFile(kept, 'utf8')).toContain(ROOT_TOKEN);
    expect((await tollgate(['logout'], '', environment)).code).toBe(0);
    expect(JSON.parse(await readFile(kept, 'utf8'))).toEqual({ contexts: {} });
    expect(await readlink(link)).toBe('../config/kept/contexts.json');
    expect(await readdir(join(directory, 'config', 'kept'))).toEqual(['contexts.json']);
  });

  it('that were kept while a session was ended stay', async () => {
    const ending = Promise.withResolvers<void>();
    const slow = createServer(async (_req, res) => {
      ending.resolve();
      await kept.promise;
      res.writeHead(401).end();
    }).listen(0);
    const kept = Promise.withResolvers<void>();
    await once(slow, 'listening');
    const { port } = slow.address() as AddressInfo;
    const session = { url: `http://localhost:${port}`, token: 'tgs_of_a_session' };
    await writeFile(file, JSON.stringify({ contexts: { session } }), { mode: 0o600 });
    const logout = tollgate(['logout', '--name', 'session']);
    await ending.promise;
    expect((await tollgate(['login', url, '--name', 'meanwhile'], ROOT_TOKEN)).code).toBe(0);
    kept.resolve();
    expect((await logout).code).toBe(0);
    slow.close();
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({
      current: 'meanwhile',
      contexts: { meanwhile: { url, token: ROOT_TOKEN } },
    });
  });

  it('of two commands at the same time are both kept', async () => {
    const { contexts } = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(`${file}.lock`, '');
    // It finds the lock before it returns, and tries again in a later turn of the event loop, when the other command is done.
    const changed = changeContexts(file, (kept) => ({
      ...kept,
      contexts: { ...kept.contexts, four: { url, token: 'four' } },
    }));
    const others = { ...contexts, three: { url, token: 'three' } };
    writeFileSync(file, JSON.stringify({ contexts: others }));
    rmSync(`${file}.lock`);
    await changed;
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({
      contexts: { ...others, four: { url, token: 'four' } },
    });
    expect(await readdir(join(directory, 'config'))).toEqual(['contexts.json']);
  });

  it('are not changed beside a command that never ends', async () => {
    await writeFile(`${file}.lock`, '');
    const { code, stderr } = await tollgate(['context', 'use', 'one']);
    expect([code, stderr]).toEqual([
      1,
      `Another command is changing the contexts. If none is, remove ${file}.lock.\n`,
    ]);
    expect(await readdir(join(directory, 'config'))).toEqual(['contexts.json', 'contexts.json.lock']);
    expect(JSON.parse(await readFile(file, 'utf8')).current).toBe('two');
    expect((await tollgate(['whoami'])).code).toBe(0);
  });

  it('that do not exist are no names of properties', async () => {
    const { code, stderr } = await tollgate(['whoami', '--context', 'constructor']);
    expect([code, stderr]).toEqual([64, expect.stringContaining('There is no context constructor')]);
  });

  it('are not read from a file that others can read', async () => {
    await chmod(file, 0o644);
    const { code, stderr } = await tollgate(['whoami']);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`chmod 600 ${file}`)]);
    expect(stderr).not.toContain(ROOT_TOKEN);
  });

  it('are not looked at where the address and the token come from elsewhere', async () => {
    await chmod(file, 0o644);
    const environment = { TOLLGATE_URL: url, TOLLGATE_TOKEN: ROOT_TOKEN };
    expect((await tollgate(['whoami'], '', environment)).code).toBe(0);
    const tokenFile = join(directory, 'unused-contexts-token');
    await writeFile(tokenFile, ROOT_TOKEN);
    expect((await tollgate(['whoami', '--url', url, '--token-file', tokenFile])).code).toBe(0);
    expect((await tollgate(['whoami', '--context', 'two'], '', environment)).code).toBe(1);
    // A directory can't be read as a file.
    const unreadable = { ...environment, TOLLGATE_CONTEXTS: directory };
    expect((await tollgate(['whoami'], '', unreadable)).code).toBe(0);
  });
});

it('a home that is no directory holds no contexts', async () => {
  const environment = { HOME: '/dev/null', TOLLGATE_URL: url };
  const { code, stderr } = await runInProcess(['whoami'], environment);
  expect([code, stderr]).toEqual([3, expect.stringContaining(`There is no token for ${url}`)]);
  expect((await runInProcess(['whoami'], { ...environment, TOLLGATE_TOKEN: ROOT_TOKEN })).code).toBe(0);
});

it('logout has a sentence for a response that is cut short, and keeps no secret', async () => {
  const head = { 'X-Request-Id': 'a', 'Content-Type': 'application/json' };
  const server = createServer((_req, res) => res.writeHead(200, head).end('{"sess')).listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const session = { url: `http://localhost:${port}`, token: 'tgs_of_a_session' };
  await mkdir(join(directory, 'config'));
  await writeFile(file, JSON.stringify({ contexts: { session } }), { mode: 0o600 });
  const { code, stderr } = await tollgate(['logout', '--name', 'session']);
  server.close();
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/\nThe body of the response is not JSON[^\n]+\n$/),
  ]);
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ contexts: {} });
});

it('context use looks for the context before it makes or needs a directory', async () => {
  for (const environment of [{ HOME: '/dev/null' }, { TOLLGATE_CONTEXTS: file }]) {
    const { code, stderr } = await runInProcess(['context', 'use', 'three'], environment);
    expect([code, stderr]).toEqual([4, expect.stringContaining('There is no context three')]);
  }
  await expect(stat(join(directory, 'config'))).rejects.toThrow('ENOENT');
});

it('a change that fails after its lock was removed rejects with its own error', async () => {
  const fault = new CommandFault('notFound', 'There is no such context.');
  const changed = changeContexts(file, () => {
    rmSync(`${file}.lock`);
    throw fault;
  });
  await expect(changed).rejects.toBe(fault);
});
