import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { satisfies } from 'semver';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '../proxy/support/localhost-certificate.ts';
import { freePort } from '../support/free-port.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { COMMAND } from './support/command-on-path.ts';
import { runInProcess } from './support/run-in-process.ts';
import { runTollgate } from './support/run-tollgate.ts';

/** Runs before the command, in its process. */
const first = (script: string) => ['--import', `data:text/javascript,${encodeURIComponent(script)}`];

describe('the start of tollgate', () => {
  it('takes npx in a clone, which installs nothing for it', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
    // It would run `prepare` as well, which builds the console while other tests use it.
    const env = { ...process.env, npm_config_offline: 'true', npm_config_ignore_scripts: 'true' };
    const { stdout } = await promisify(execFile)('npx', ['--no', '--', 'tollgate', '--version'], { env });
    expect(stdout.trim()).toBe(version);
  });

  it('on an old Node says which one is needed, in one sentence', async () => {
    const { engines } = JSON.parse(await readFile('package.json', 'utf8')) as { engines: { node: string } };
    for (const version of ['14.0.0', '22.21.0', '24.8.0', '24.9.0', '25.2.0', '26.10.0']) {
      const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
      const { code, stderr } = await runTollgate(['--version'], { nodeOptions: first(pretend) });
      const fits = satisfies(version, engines.node);
      expect([version, code]).toEqual([version, fits ? 0 : 1]);
      if (!fits) expect(stderr).toMatch(/^Tollgate needs Node [^\n]+this is Node [\d.]+\.\n$/);
    }
  });

  it('loads neither gateway nor other commands for a command of the management API', async () => {
    const report = `
      import { registerHooks } from 'node:module';
      registerHooks({ load(url, context, next) { if (url.startsWith('file:')) process.stderr.write(url + '\\n'); return next(url, context); } });`;
    const { stderr } = await runTollgate(['keys', 'list', '--url', 'http://127.0.0.1:1', '--retries', '0'], {
      nodeOptions: first(report),
      environment: { TOLLGATE_TOKEN: 'any' },
    });
    const loaded = [...stderr.matchAll(/^file:.*\/(src|node_modules)\/(\S+)$/gm)].map(([, top, path]) => [
      top,
      path,
    ]);
    const folders = loaded.flatMap(([top, path = '']) => (top === 'src' ? [path.split('/')[0]] : []));
    expect([...new Set(folders)].toSorted()).toEqual(['cli', 'client', 'platform']);
    const packages = loaded.flatMap(([top, path = '']) =>
      top === 'node_modules' ? [path.split('/')[0]] : [],
    );
    expect([...new Set(packages)].toSorted()).toEqual(
      ['commander', 'fast-string-truncated-width', 'fast-string-width', 'openapi-fetch'].filter((name) =>
        packages.includes(name),
      ),
    );
    expect(stderr).not.toContain('commands/plans/');
  });
});

describe('the exit code of tollgate', () => {
  it.each([
    ['missing', undefined, {}],
    ['cut off', 'export const answer = {', {}],
    // Node does not say then where an error of syntax is.
    ['missing, also where Node only warns', undefined, { NODE_OPTIONS: '--unhandled-rejections=warn' }],
  ])(
    'is 1 with a sentence where a file of the installation is %s, and names it',
    async (_, text, environment) => {
      const directory = await mkdtemp(join(await scratchFolder(), 'tollgate-incomplete-'));
      try {
        const file = join(directory, 'bin/tollgate.js');
        const module = join(directory, 'dist/cli/tollgate.js');
        await Promise.all([dirname(file), dirname(module)].map((path) => mkdir(path, { recursive: true })));
        await copyFile(COMMAND, file);
        await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
        if (text !== undefined) await writeFile(module, text);
        const { code, stdout, stderr } = await runTollgate(['--version'], { file, environment });
        const [sentence] = stderr.split('\n');
        expect([code, stdout, sentence]).toEqual([
          1,
          '',
          'Tollgate could not be loaded. If a file or a package is missing, install it again, in a clone by `npm ci`.',
        ]);
        expect([module, pathToFileURL(module).href].some((place) => stderr.includes(place))).toBe(true);
      } finally {
        await rm(directory, { recursive: true });
      }
    },
  );

  it.each([
    ['a command that is not there', ['frobnicate'], 64],
    ['help for a command that is not there', ['help', 'frobnicate'], 64],
    ['--help of a command that is not there', ['frobnicate', '--help'], 64],
    ['--help of a subcommand that is not there', ['keys', 'frobnicate', '--help'], 64],
    ['a command without its argument', ['keys', 'show'], 64],
    ['an option that is not there', ['keys', 'list', '--frob'], 64],
    ['an output format that is not there', ['keys', 'list', '-o', 'xml'], 64],
    ['no gateway', ['keys', 'list'], 64],
    ['an address that is none', ['keys', 'list', '--url', 'nowhere'], 64],
    ['no token', ['keys', 'list', '--url', 'http://127.0.0.1:1'], 3],
    ['help', ['help', 'keys', 'list'], 0],
    ['help for a command with subcommands', ['help', 'audit'], 0],
    ['help for everything', ['help'], 0],
  ])('for %s', async (_what, words, code) => {
    const ended = await runTollgate(words);
    expect(ended.code).toBe(code);
    if (code !== 0) expect(ended).toMatchObject({ stdout: '', stderr: expect.stringMatching(/./) });
  });

  it('is 75 where nothing listens, after it has tried again', async () => {
    const words = ['keys', 'list', '--url', `http://127.0.0.1:${await freePort()}`, '--retries', '1'];
    const { code, stderr } = await runTollgate(words, { environment: { TOLLGATE_TOKEN: 'any' } });
    expect(code).toBe(75);
    expect(stderr).toMatch(
      /^Trying again in .*ECONNREFUSED\.\nThe gateway can not be reached \(ECONNREFUSED\)\.\n$/,
    );
  });

  it.each(['{"apiKeys":[{"consumerApi', '<html>'])(
    'is 1 with one sentence where the body of a success is %j',
    async (body) => {
      const head = { 'X-Request-Id': 'a', 'Content-Type': 'application/json' };
      const server = createHttpServer((_req, res) => res.writeHead(200, head).end(body));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const words = ['keys', 'list', '--url', `http://127.0.0.1:${port}`];
      try {
        const { code, stdout, stderr } = await runInProcess(words, { TOLLGATE_TOKEN: 'any' });
        expect([code, stdout, stderr]).toEqual([
          1,
          '',
          'The body of the response is not JSON, or only a part of it. If the command makes a change, it may have been made.\n',
        ]);
      } finally {
        server.close();
      }
    },
  );

  it('is 1 with a sentence where the body of a successful import is cut short', async () => {
    const head = { 'X-Request-Id': 'a', 'Content-Type': 'application/json' };
    const server = createHttpServer((_req, res) => res.writeHead(200, head).end('{"results":[{"ind'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const words = ['keys', 'import', '-', '--url', `http://127.0.0.1:${port}`];
    const row = '{"name": "Mobile app", "secret": "an-existing-secret-of-the-app"}\n';
    const { code, stdout, stderr } = await runInProcess(words, { TOLLGATE_TOKEN: 'any' }, row);
    server.close();
    expect([code, stdout, stderr.split('\n').slice(1)]).toEqual([
      1,
      '',
      [
        'The body of the response is not JSON, or only a part of it. If the command makes a change, it may have been made.',
        '',
      ],
    ]);
  });

  it.each<[string, (res: ServerResponse) => void, RegExp]>([
    ['is lost', (res) => res.socket?.destroy(), /^The connection broke before a response had come \(\w+\)\./],
    ['is the 504 of a proxy', (res) => res.writeHead(504).end('<html>'), /^The response has the status 504 /],
    [
      'is that a store does not respond',
      (res) => res.writeHead(503).end('{"error": "Try again shortly.", "code": "store_unavailable"}'),
      /^Try again shortly\./,
    ],
  ])('is 75 where the response to a DELETE %s: it may be done', async (_what, respond, reason) => {
    const methods: (string | undefined)[] = [];
    const plan = JSON.stringify({ rateLimitId: 'gold', limit: 1, period: '1s' });
    const server = createHttpServer(({ method }, res) => {
      methods.push(method);
      if (method === 'DELETE') respond(res);
      else res.writeHead(200, { 'X-Request-Id': 'a', 'Content-Type': 'application/json' }).end(plan);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      const words = ['plans', 'delete', 'gold', '--yes', '--url', `http://127.0.0.1:${port}`];
      const { code, stderr } = await runInProcess(words, { TOLLGATE_TOKEN: 'any' });
      expect([code, methods]).toEqual([75, ['GET', 'DELETE']]);
      expect(stderr).toMatch(reason);
      expect(stderr).toMatch(/\. If the command makes a change, it may have been made\.\n$/);
    } finally {
      server.close();
    }
  });
});

describe('a certificate that is not trusted', () => {
  it.each(['keys list', 'events --follow'])('ends %s at once, which says what to do', async (words) => {
    let attempts = 0;
    const server = createServer({ cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY }).listen(0, 'localhost');
    server.on('connection', () => {
      attempts += 1;
    });
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      const { code, stderr } = await runTollgate(
        [...words.split(' '), '--url', `https://localhost:${port}`],
        {
          environment: { TOLLGATE_TOKEN: 'any' },
        },
      );
      expect([code, attempts]).toEqual([1, 1]);
      expect(stderr).toMatch(
        /^The gateway can not be reached \(DEPTH_ZERO_SELF_SIGNED_CERT\): .*NODE_EXTRA_CA_CERTS.*NODE_USE_SYSTEM_CA=1.*\.\n$/,
      );
    } finally {
      server.close();
    }
  });
});

describe('the help of tollgate', () => {
  it('suggests the command that was probably meant', async () => {
    expect((await runTollgate(['keys', 'lst'])).stderr).toContain('Did you mean list?');
  });

  it('shows a command with its options and examples', async () => {
    const { stdout } = await runTollgate(['help', 'keys', 'create']);
    expect(stdout).toMatch(
      /Usage: tollgate keys create [\s\S]*--secret-file[\s\S]*Examples:\n {2}tollgate keys create/,
    );
  });
});
