import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { satisfies } from 'semver';
import { Admin } from '../support/admin.ts';
import {
  ENCRYPTION_KEY,
  type GatewayProcess,
  ROOT_TOKEN,
  runGateway,
  startGateway,
} from '../support/gateway.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { createTestDatabase, type TestDatabase, testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const BACKEND_URL = 'http://127.0.0.1:1';

let directory: string;
let gateway: GatewayProcess | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-faults-'));
});
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  await rm(directory, { recursive: true, force: true });
});

/** What stands on standard error: the lines that are not of the log. */
async function sentencesOf(environment: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { code, output } = await runGateway(environment);
  expect(code).toBe(1);
  return output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
}

async function components(): Promise<Readonly<Record<string, string>>> {
  const response = await fetch(`${gateway?.opsUrl}/readyz`);
  const body = (await response.json()) as { components: Record<string, string> };
  return { status: String(response.status), ...body.components };
}

/** The log lines from a level on: 40 is a warning, 50 an error. */
function lines(level: number): readonly { readonly level: number; readonly msg: string }[] {
  return (gateway?.output() ?? '')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { level: number; msg: string })
    .filter((line) => line.level >= level);
}

describe('a start that can not be', () => {
  it('on a machine with an old Node says which one is needed, in one sentence', async () => {
    const { engines } = JSON.parse(await readFile('package.json', 'utf8')) as { engines: { node: string } };
    for (const version of ['22.21.0', '24.8.0', '24.9.0', '24.21.0', '25.2.0', '26.10.0']) {
      const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
      const args = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, 'src/main.ts'];
      // Without settings: a Node that is new enough gets as far as to reject them.
      const failure = (await run(process.execPath, args, { env: {} }).catch((error: unknown) => error)) as {
        code: number;
        stderr: string;
      };
      const fits = satisfies(version, engines.node);
      expect([version, failure.code]).toEqual([version, fits ? 78 : 1]);
      if (!fits) expect(failure.stderr).toMatch(/^Tollgate needs Node [^\n]+this is Node [\d.]+\. [^\n]+\n$/);
    }
  });

  it('because a port is taken says which setting chooses another', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as { port: number };
    for (const setting of ['PORT', 'ADMIN_PORT', 'OPS_PORT']) {
      expect(
        await sentencesOf({ BACKEND_URL, DATA_DIR: directory, ADMIN_PORT: '0', [setting]: String(port) }),
      ).toEqual([
        `Port ${port} of 127.0.0.1 is in use by another process: stop it, or set ${setting} to another port.`,
      ]);
    }
    expect(await sentencesOf({ BACKEND_URL, DATA_DIR: directory, HOST: '192.0.2.1' })).toEqual([
      'This machine has no address 192.0.2.1: set HOST to one that it has, or to 0.0.0.0 for all.',
    ]);
    other.close();
  });

  it('because another process has the data directory says which', async () => {
    gateway = await startGateway({ BACKEND_URL, DATA_DIR: directory });
    expect(await sentencesOf({ BACKEND_URL, DATA_DIR: directory })).toEqual([
      `The directory ${directory}/postgres is in use by process ${gateway.pid} on host ${hostname()}: stop it, or give this one a DATA_DIR of its own.`,
    ]);
  });

  it('because the secrets can be read by others says how to mend it', async () => {
    gateway = await startGateway({ BACKEND_URL, DATA_DIR: directory });
    await gateway.stop();
    const file = join(directory, 'secrets.json');
    await chmod(file, 0o644);
    expect(await sentencesOf({ BACKEND_URL, DATA_DIR: directory })).toEqual([
      `${file} holds secrets and can be read by others: run chmod 600 ${file}`,
    ]);
  });

  it('because the secrets are gone makes no new ones beside the records', async () => {
    gateway = await startGateway({ BACKEND_URL, DATA_DIR: directory });
    await gateway.stop();
    const file = join(directory, 'secrets.json');
    const { encryptionKey } = JSON.parse(await readFile(file, 'utf8')) as { encryptionKey: string };
    await rm(file);
    expect(await sentencesOf({ BACKEND_URL, DATA_DIR: directory })).toEqual([
      `${file} is gone, but there are records that its encryption key sealed: restore it, set ENCRYPTION_KEY, or remove the whole directory to start anew.`,
    ]);
    gateway = await startGateway({ BACKEND_URL, DATA_DIR: directory, ENCRYPTION_KEY: encryptionKey });
  });
});

describe('a first start and a clean stop', () => {
  it('have no error in the log, and the last line says that usage is written', async () => {
    gateway = await startGateway({ BACKEND_URL, DATA_DIR: directory, ROOT_TOKEN });
    await gateway.stop();
    expect(lines(50)).toEqual([]);
    expect(lines(0).at(-1)).toMatchObject({ level: 30, msg: 'stopped, usage written' });
  });
});

describe('with stores on a network', () => {
  let database: TestDatabase;
  let redis: RedisServer;
  let settings: Readonly<Record<string, string>>;

  beforeAll(async () => {
    database = await createTestDatabase();
    redis = await startRedisServer();
    const client = new Redis(redis.url);
    await client.config('SET', 'requirepass', 'right-password');
    client.disconnect();
    settings = {
      BACKEND_URL,
      ROOT_TOKEN,
      ENCRYPTION_KEY,
      DATABASE_URL: database.url,
      REDIS_URL: testRedisUrl(),
      REDIS_TIMEOUT_MS: '5000',
    };
  });
  afterAll(async () => {
    await redis?.stop();
    await database?.drop();
  });

  it('an ENCRYPTION_KEY that opens no stored key keeps a replica from becoming ready', async () => {
    gateway = await startGateway(settings);
    await new Admin(gateway.url).makeKey('sealed');
    await gateway.stop();
    const other = Buffer.alloc(32, 1).toString('base64');
    gateway = await startGateway({ ...settings, ENCRYPTION_KEY: other }, { isReady: false });
    const reason = 'ENCRYPTION_KEY does not open the stored keys';
    await until(async () => (await components()).postgres === reason);
    expect((await components()).status).toBe('503');
    await until(() => lines(50).length > 0);
    expect(lines(50)).toEqual([expect.objectContaining({ component: 'postgres', reason })]);
    await gateway.stop();
    // One of several is enough, and says so where it is not.
    gateway = await startGateway({ ...settings, ENCRYPTION_KEY: `${other},${ENCRYPTION_KEY}` });
    await new Admin(gateway.url).makeKey('sealed with the other');
    await gateway.stop();
    gateway = await startGateway({ ...settings, ENCRYPTION_KEY: other });
    expect(lines(40).map(({ msg }) => msg)).toEqual([
      'ENCRYPTION_KEY does not open some of the stored keys: add the one that they were made under',
    ]);
  });

  it('readiness and the log say in words that help, and without a secret, why a store is not available', async () => {
    const wrong = new URL(database.url);
    wrong.username = 'nobody_at_all';
    wrong.password = 'secret-of-postgres';
    const nothing = new URL(database.url);
    nothing.port = '1';
    const cases: readonly (readonly [string, string, RegExp, Readonly<Record<string, string>>])[] = [
      [
        'DATABASE_URL',
        wrong.href,
        /^(password authentication failed for user nobody_at_all|role nobody_at_all does not exist)$/,
        {},
      ],
      ['DATABASE_URL', nothing.href, /^connection refused: nothing listens/, {}],
      ['DATABASE_URL', `${database.url}_missing`, /^database tollgate_\w+_missing does not exist$/, {}],
      ['DATABASE_URL', `${database.url}?sslmode=require`, /^the server does not speak TLS$/, {}],
      [
        'REDIS_URL',
        redis.url.replace('redis://', 'redis://:secret-of-redis@'),
        /^wrong user name or password$/,
        {},
      ],
      ['REDIS_URL', redis.url, /^a password is required, and none is in the URL$/, {}],
      ['REDIS_URL', 'redis://127.0.0.1:1', /^connection refused: nothing listens/, {}],
      ['REDIS_URL', 'redis://name.invalid:6379', /^host name (not found|could not be looked up)$/, {}],
    ];
    for (const [variable, value, reason] of cases) {
      const component = variable === 'DATABASE_URL' ? 'postgres' : 'redis';
      gateway = await startGateway({ ...settings, [variable]: value }, { isReady: false });
      await until(() => lines(50).some((line) => 'component' in line));
      expect(lines(50).filter((line) => 'component' in line)).toContainEqual(
        expect.objectContaining({ component, reason: expect.stringMatching(reason) }),
      );
      expect((await components())[component]).toMatch(reason);
      expect(gateway.output()).not.toMatch(/secret-of-|right-password/);
      await gateway.stop();
    }
  });
});
