import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { buildConsoleWhereOutdated, runAsOnlyConsoleBuild } from '../support/console-build.ts';
import { documentedBlocks } from '../support/documented-commands.ts';
import { endChild, hasEnded } from '../support/end-child.ts';
import { ENCRYPTION_KEY, type GatewayProcess, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { createTestDatabase, type TestDatabase, testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { runTollgate } from './support/run-tollgate.ts';

const run = promisify(execFile);
/** A file of the site, as `npm run docs:build` leaves it beside the console. */
const BUILT_SITE = 'dist/docs/left-over.html';
/** How long a demo from the package may take: half a minute of CPU, perhaps beside another run of the suite. */
const DEMO_MS = 300_000;

let directory: string;
let installed: string;
let database: TestDatabase;
let gateway: GatewayProcess | undefined;

beforeAll(async () => {
  directory = await mkdtemp(join(await scratchFolder(), 'tollgate-package-'));
  database = await createTestDatabase();
  const env = { ...process.env, npm_config_prefer_offline: 'true' };
  await mkdir('dist/docs', { recursive: true });
  await writeFile(BUILT_SITE, '');
  // What `npm pack` runs by itself, but for a console that is built already.
  await buildConsoleWhereOutdated();
  await run('npm', ['run', '--silent', 'prepack'], { env });
  await runAsOnlyConsoleBuild(['npm', 'pack', '--ignore-scripts', '--pack-destination', directory], env);
  const [tarball = ''] = await readdir(directory);
  await writeFile(join(directory, 'package.json'), '{ "private": true, "type": "module" }');
  await run('npm', ['install', '--no-audit', '--no-fund', join(directory, tarball)], { env, cwd: directory });
  installed = join(directory, 'node_modules/.bin/tollgate');
});
afterAll(async () => {
  await gateway?.stop();
  await database?.drop();
  await rm(directory, { recursive: true, force: true });
  await rm(BUILT_SITE, { force: true });
});

describe('the package, packed and installed in an empty directory', () => {
  it('has no development dependencies, tests or TypeScript of ours', async () => {
    const root = join(directory, 'node_modules/tollgate');
    for (const dependency of ['jest', 'typescript', 'openapi-typescript'])
      expect(existsSync(join(directory, 'node_modules', dependency))).toBe(false);
    expect((await readdir(root)).toSorted()).toEqual(
      ['LICENSE', 'README.md', 'bin', 'dist', 'docs', 'package.json', 'sql'].toSorted(),
    );
    expect(
      (await readdir(root, { recursive: true })).filter(
        (file) => /^(bin|dist).*\.ts$/.test(file) && !/^dist\/client\/.*\.d\.ts$/.test(file),
      ),
    ).toEqual([]);
  });

  it('has no site of the docs that was built before', () => {
    expect(existsSync(BUILT_SITE)).toBe(true);
    expect(existsSync(join(directory, 'node_modules/tollgate/dist/docs'))).toBe(false);
  });

  it('has the console as it is built for use', async () => {
    const assets = join(directory, 'node_modules/tollgate/dist/console/assets');
    const scripts = (await readdir(assets)).filter((file) => file.endsWith('.js'));
    const all = await Promise.all(scripts.map((file) => readFile(join(assets, file), 'utf8')));
    expect(scripts.length).toBeGreaterThan(5);
    expect(scripts.filter((_, index) => all[index]?.includes('React DevTools'))).toEqual([]);
  });

  it('migrates a database, serves, administers, and rotates the encryption key', async () => {
    const settings = {
      BACKEND_URL: 'http://127.0.0.1:1',
      DATABASE_URL: database.url,
      REDIS_URL: testRedisUrl(),
      REDIS_TIMEOUT_MS: '5000',
      AUTO_MIGRATE: 'false',
      ROOT_TOKEN,
      ENCRYPTION_KEY,
    };
    const migrated = await runTollgate(['migrate'], { file: installed, environment: settings });
    expect(migrated).toMatchObject({ code: 0, stdout: expect.stringContaining('migrations applied') });
    gateway = await startGateway(settings, { main: installed, args: ['serve'] });
    const page = await fetch(`${gateway.url}/tollgate/console`);
    expect(await page.text()).toContain('<script type="module"');
    const environment = { TOLLGATE_URL: gateway.url, TOLLGATE_TOKEN: ROOT_TOKEN };
    const made = await runTollgate(['keys', 'create', 'packed'], { file: installed, environment });
    expect(JSON.parse(made.stdout)).toMatchObject({ name: 'packed', secret: expect.stringMatching(/^tg_/) });
    const yaml = await runTollgate(['keys', 'list', '-o', 'yaml'], { file: installed, environment });
    expect(yaml).toMatchObject({ code: 0, stdout: expect.stringContaining('name: packed') });
    expect(await gateway.stop()).toBe(0);
    gateway = undefined;

    const keys = `${Buffer.alloc(32, 8).toString('base64')},${ENCRYPTION_KEY}`;
    const rotated = await runTollgate(['rotate-encryption-key'], {
      file: installed,
      environment: { DATABASE_URL: database.url, ENCRYPTION_KEY: keys },
    });
    expect(rotated).toMatchObject({ code: 0, stdout: expect.stringContaining('"rotated":1') });
  });

  it('has a typed client, which tsc checks and node runs', async () => {
    const server = createServer((req, res) => {
      res.setHeader('x-request-id', 'r').setHeader('content-type', 'application/json');
      if (req.method === 'POST') res.writeHead(409).end('{"error":"It is there.","code":"plan_exists"}');
      else if (req.url?.includes('cursor')) res.end('{"rateLimits":[{"rateLimitId":"two"}]}');
      else res.end('{"rateLimits":[{"rateLimitId":"one"}],"nextCursor":"c"}');
    });
    try {
      const port = await listenOnLoopback(server);
      const [example] = (await documentedBlocks('client.md')).filter(({ language }) => language === 'ts');
      const program = join(directory, 'program.mts');
      await writeFile(program, example?.text ?? '');
      await writeFile(
        join(directory, 'wrong.mts'),
        "import { createTollgateClient } from 'tollgate/client';\nexport const wrong: number = createTollgateClient;\n",
      );
      const tsc = resolve('node_modules/.bin/tsc');
      const options = [
        '--noEmit',
        '--strict',
        '--module',
        'nodenext',
        '--lib',
        'es2023,dom',
        '--types',
        'node',
      ];
      const typeRoots = ['--typeRoots', resolve('node_modules/@types')];
      const checked = await run(tsc, [...options, ...typeRoots, 'program.mts', 'wrong.mts'], {
        cwd: directory,
      }).catch((error: { readonly stdout: string }) => error);
      expect(checked.stdout.trim().split('\n')).toEqual([
        expect.stringMatching(/^wrong\.mts\(2,14\): error TS2322/),
      ]);
      const { stdout } = await run(process.execPath, [program], {
        env: { TOLLGATE_URL: `http://127.0.0.1:${port}`, TOLLGATE_TOKEN: ROOT_TOKEN },
      });
      expect(stdout).toBe('one\ntwo\n409 plan_exists It is there.\n');
    } finally {
      server.close();
    }
  });

  it('runs the demo with npx, also as a user without rights, until a signal ends it', async () => {
    const isRoot = process.getuid?.() === 0;
    await chmod(directory, 0o755);
    const home = await mkdtemp(join(directory, 'home-'));
    await chmod(home, 0o777);
    // The clone may be below a folder that others may not enter, and the machine's own Node is older.
    const bin = join(directory, 'bin');
    await mkdir(bin);
    await copyFile(process.execPath, join(bin, 'node'));
    await chmod(join(bin, 'node'), 0o755);
    const asUser = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
    const [file = '', ...args] = [...asUser, 'npx', '--no', 'tollgate', 'demo', '--stay'];
    const demo = spawn(file, args, {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: `${bin}:${process.env.PATH}`,
        HOME: home,
        TMPDIR: home,
        LOG_LEVEL: 'info',
        // Another demo may take the usual ports between the look at them and the start.
        PORT: '0',
        OPS_PORT: '0',
        npm_config_update_notifier: 'false',
      },
    });
    let output = '';
    for (const stream of [demo.stdout, demo.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
      });
    }
    try {
      await until(() => hasEnded(demo) || output.includes('live through a day'), { timeoutMs: DEMO_MS });
      expect(output).toContain('Tollgate runs at http://127.0.0.1:');
      expect(output).toContain('200 200 200 200 200 429');
      const stores = /"DATA_DIR":"([^"]+)"/.exec(output)?.[1] ?? '';
      expect(existsSync(stores)).toBe(true);
      // At a signal to the demo, below npx, it removes the directory of its stores.
      const closed = once(demo, 'close');
      process.kill(Number(/"pid":(\d+)/.exec(output)?.[1]), 'SIGTERM');
      expect(await closed).toEqual([0, null]);
      expect(existsSync(stores)).toBe(false);
    } finally {
      await endChild(demo);
    }
  });
});
