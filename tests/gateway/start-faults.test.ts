import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { satisfies } from 'semver';
import { listenAt } from '../../src/app/listen.ts';
import { StartFault } from '../../src/platform/process/start-fault.ts';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { type DataDirectory, makeDataDirectory } from '../support/data-directory.ts';
import {
  COMPILED_DIRECTORY,
  ENCRYPTION_KEY,
  gatewaySettings,
  ROOT_TOKEN,
  type RunningGateway,
  runGateway,
  startGateway,
} from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { onRedis } from '../support/on-redis.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { createMigratedDatabase, type TestDatabase, testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const BACKEND_URL = 'http://127.0.0.1:1';

let afterFirst: DataDirectory;
/** Made, and used once, at the first start. */
let kept: { readonly id: string; readonly secret: string };
let directory: string;
let gateway: RunningGateway | undefined;

beforeAll(async () => {
  afterFirst = await makeDataDirectory(async ({ url }, made) => {
    const headers = { ...(await ownerOf(made)), 'content-type': 'application/json' };
    const response = await fetch(`${url}/consumer-api-key/create`, {
      ...{ method: 'POST', headers },
      body: '{"name":"kept"}',
    });
    kept = (await response.json()) as typeof kept;
    expect(await statusOf(url, kept.secret)).toBe(502);
  });
});
afterAll(() => afterFirst?.remove());
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-faults-'));
});
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  await rm(directory, { recursive: true, force: true });
});

/** The credential that the first start has made. */
async function ownerOf(dataDirectory: string): Promise<{ readonly authorization: string }> {
  const { rootToken } = JSON.parse(await readFile(join(dataDirectory, 'secrets.json'), 'utf8'));
  return { authorization: `Bearer ${rootToken}` };
}

/** What stands on standard error: the lines that are not of the log. */
async function sentencesOf(environment: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { code, output } = await runGateway(environment);
  expect(code).toBe(1);
  return output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));
}

/** The sentence of the fault that such a start ends with. A process writes it to standard error, as the first of these tests shows. */
async function faultOf(environment: Readonly<Record<string, string>>): Promise<string> {
  const outcome = await startInProcess(environment, { isReady: false }).catch((error: unknown) => error);
  if (!(outcome instanceof StartFault))
    throw new Error('the start did not end with a sentence', { cause: outcome });
  return outcome.message;
}

async function components(): Promise<Readonly<Record<string, string>>> {
  const response = await fetch(`${gateway?.opsUrl}/readyz`);
  const body = (await response.json()) as { components: Record<string, string> };
  return { status: String(response.status), ...body.components };
}

const OTHER_KEY = Buffer.alloc(32, 1).toString('base64');
const SEALED = 'ENCRYPTION_KEY does not open the stored keys';

/** Makes a key under these settings, and starts again under another encryption key, until readiness says so. */
async function startUnderOther(made: Readonly<Record<string, string>>) {
  gateway = await startInProcess(made);
  const { secret } = await new Admin(gateway.url).makeKey('sealed');
  await gateway.stop();
  const sealed = await startInProcess({ ...made, ENCRYPTION_KEY: OTHER_KEY }, { isReady: false });
  gateway = sealed;
  await until(async () => (await components()).postgres === SEALED);
  return { secret, sealed };
}

/** The log lines from a level on: 40 is a warning, 50 an error. */
const lines = (level: number) => linesOf(gateway?.output() ?? '', level);

interface LogLine {
  readonly level: number;
  readonly msg: string;
  /** Of lines about a component. */
  readonly component?: string;
  readonly reason?: string;
}

function linesOf(output: string, level: number): readonly LogLine[] {
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as LogLine)
    .filter((line) => line.level >= level);
}

describe('a start that can not be', () => {
  it('on a machine with an old Node says which one is needed, in one sentence', async () => {
    const { engines } = JSON.parse(await readFile('package.json', 'utf8')) as { engines: { node: string } };
    for (const version of ['22.21.0', '24.8.0', '24.9.0', '24.21.0', '25.2.0', '26.10.0']) {
      const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
      const args = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, 'src/main.ts'];
      // Without settings: a Node that is new enough gets as far as to reject them.
      const env = { NODE_COMPILE_CACHE: COMPILED_DIRECTORY };
      const failure = (await run(process.execPath, args, { env }).catch((error: unknown) => error)) as {
        code: number;
        stderr: string;
      };
      const fits = satisfies(version, engines.node);
      expect([version, failure.code]).toEqual([version, fits ? 78 : 1]);
      if (!fits) expect(failure.stderr).toMatch(/^Tollgate needs Node [^\n]+this is Node [\d.]+\. [^\n]+\n$/);
    }
  });

  it('because the data directory can not be written says what to do', async () => {
    // Where not even root may write.
    const unwritable = process.getuid?.() === 0 ? '/sys/kernel' : directory;
    await chmod(directory, 0o500);
    const rest = /\([A-Z]+\): let this user write there, or set DATA_DIR to another place\.$/;
    const secrets = { ROOT_TOKEN, ENCRYPTION_KEY };
    const sentences = await sentencesOf({ BACKEND_URL, DATA_DIR: unwritable });
    expect(sentences).toEqual([expect.stringMatching(rest)]);
    expect(sentences[0]).toContain(`The file ${unwritable}/secrets.json can not be made `);
    for (const [dataDirectory, settings, what] of [
      [unwritable, secrets, `The directory ${unwritable}/postgres can not be made `],
      // A file system that has no place for directories at all.
      ['/proc/tollgate', {}, 'The directory /proc/tollgate can not be made '],
    ] as const) {
      const fault = await faultOf({ BACKEND_URL, DATA_DIR: dataDirectory, ...settings });
      expect(fault).toMatch(rest);
      expect(fault).toContain(what);
    }
  });
});

describe('a host that the system does not listen at', () => {
  it.each([
    ['EADDRNOTAVAIL', 'This machine has no address fe80::1: '],
    ['EAFNOSUPPORT', 'This machine has no address fe80::1: '],
    ['EINVAL', 'The address fe80::1 needs its interface, like fe80::1%eth0: '],
    ['EAI_AGAIN', 'The host name fe80::1 could not be looked up: '],
    ['ENOTFOUND', 'There is no host named fe80::1: '],
  ])('for %s is a fault that names the setting', async (code, sentence) => {
    const place = { port: 0, host: 'fe80::1', portSetting: 'PORT', hostSetting: 'HOST' } as const;
    const listening = listenAt(place, () => Promise.reject(Object.assign(new Error('listen'), { code })));
    await expect(listening).rejects.toThrow(StartFault);
    await expect(listening).rejects.toThrow(`${sentence}set HOST to `);
  });
});

describe('a first start', () => {
  it('and a clean stop log no error of the gateway, and at last that usage is written', () => {
    // Nothing listens where the backend should be.
    expect(linesOf(afterFirst.output, 50)).toMatchObject([{ msg: 'there is no connection to the backend' }]);
    expect(linesOf(afterFirst.output, 0).at(-1)).toMatchObject({ level: 30, msg: 'stopped, usage written' });
  });
});

describe('a start after the first one', () => {
  it('has the same secrets, keys and plans, and the data directory to itself', async () => {
    const file = join(afterFirst.directory, 'secrets.json');
    expect(afterFirst.output).toContain(file);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await afterFirst.copyTo(directory);
    const started = await startGateway({ BACKEND_URL, DATA_DIR: directory });
    gateway = started;
    const headers = await ownerOf(afterFirst.directory);
    const detail = await fetch(`${gateway.url}/consumer-api-key/${kept.id}`, { headers });
    expect(await detail.json()).toMatchObject({
      name: 'kept',
      secret: kept.secret,
      usage: { totalRequests: 1, failedRequests: 1 },
    });
    const rootToken = headers.authorization.slice('Bearer '.length);
    for (const output of [afterFirst.output, gateway.output()]) expect(output).not.toContain(rootToken);

    expect(await faultOf({ BACKEND_URL, DATA_DIR: directory })).toBe(
      `The directory ${directory}/postgres is in use by process ${started.pid} on host ${hostname()}: stop it, or give this one another DATA_DIR.`,
    );
  });
});

describe('a start after the first one that can not be', () => {
  beforeEach(() => afterFirst.copyTo(directory));

  it('because the secrets can be read by others says how to mend it', async () => {
    const file = join(directory, 'secrets.json');
    await chmod(file, 0o644);
    expect(await faultOf({ BACKEND_URL, DATA_DIR: directory })).toBe(
      `${file} holds secrets and can be read by others: run chmod 600 ${file}`,
    );
  });

  it('because the secrets are gone makes no new ones beside the records', async () => {
    const file = join(directory, 'secrets.json');
    const { encryptionKey } = JSON.parse(await readFile(file, 'utf8')) as { encryptionKey: string };
    await rm(file);
    expect(await faultOf({ BACKEND_URL, DATA_DIR: directory })).toBe(
      `${file} is gone, but there are records that its encryption key sealed: restore it, set ENCRYPTION_KEY, or remove the whole directory to start over.`,
    );
    gateway = await startInProcess({ BACKEND_URL, DATA_DIR: directory, ENCRYPTION_KEY: encryptionKey });
  });
});

describe('with stores on a network', () => {
  let database: TestDatabase;
  let redis: RedisServer;
  let settings: Readonly<Record<string, string>>;

  beforeAll(async () => {
    database = await createMigratedDatabase();
    redis = await startRedisServer();
    await onRedis(redis.url, (client) => client.config('SET', 'requirepass', 'right-password'));
    settings = gatewaySettings(BACKEND_URL, database.url, testRedisUrl());
  });
  afterAll(async () => {
    await redis?.stop();
    await database?.drop();
  });

  it('a port that is taken ends the start, and says which setting chooses another', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as { port: number };
    for (const setting of ['PORT', 'ADMIN_PORT', 'OPS_PORT']) {
      expect(await faultOf({ ...settings, ADMIN_PORT: '0', [setting]: String(port) })).toBe(
        `Port ${port} of 127.0.0.1 is in use by another process: stop it, or set ${setting} to another port.`,
      );
    }
    expect(await faultOf({ ...settings, HOST: '192.0.2.1' })).toBe(
      'This machine has no address 192.0.2.1: set HOST to one that it has, or to 0.0.0.0 for all.',
    );
    other.close();
  });

  it('under an ENCRYPTION_KEY that opens no stored key no change is made', async () => {
    const { secret, sealed } = await startUnderOther(settings);
    const made = await new Admin(sealed.url).call('POST', '/consumer-api-key/create', { name: 'n' });
    expect(made).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
    expect((await components()).status).toBe('503');
    await sealed.stop();
    gateway = await startInProcess(settings);
    expect(await statusOf(gateway.url, secret)).toBe(502);
    const verified = await new Admin(gateway.url).call('GET', '/tollgate/audit-log/verify');
    expect(verified.body).toMatchObject({ valid: true });
  });

  it('another ENCRYPTION_KEY keeps a replica from becoming ready also where no secret is kept', async () => {
    const { url, drop } = await createMigratedDatabase();
    try {
      const once = { ...settings, DATABASE_URL: url, SECRET_REVEAL: 'once' };
      const { secret, sealed } = await startUnderOther(once);
      await until(() => lines(50).some((line) => line.component === 'postgres' && line.reason === SEALED));
      expect((await components()).status).toBe('503');
      expect(await statusOf(sealed.url, secret)).toBe(503);
      await sealed.stop();
      gateway = await startInProcess({ ...once, ENCRYPTION_KEY: `${OTHER_KEY},${ENCRYPTION_KEY}` });
      expect(await statusOf(gateway.url, secret)).toBe(502);
      await gateway.stop();
    } finally {
      await drop();
    }
  });

  it('an ENCRYPTION_KEY that opens no stored key keeps a replica from becoming ready', async () => {
    const { secret, sealed } = await startUnderOther(settings);
    expect((await components()).status).toBe('503');
    const response = await fetch(sealed.url, { headers: { authorization: `Bearer ${secret}` } });
    expect({ status: response.status, body: await response.json() }).toMatchObject({
      ...{ status: 503, body: { code: 'store_unavailable' } },
    });
    await until(() => lines(50).some((line) => line.component === 'postgres' && line.reason === SEALED));
    await sealed.stop();
    // One of several is enough, and says so where it is not.
    gateway = await startInProcess({ ...settings, ENCRYPTION_KEY: `${OTHER_KEY},${ENCRYPTION_KEY}` });
    await new Admin(gateway.url).makeKey('sealed with the other');
    await gateway.stop();
    gateway = await startInProcess({ ...settings, ENCRYPTION_KEY: OTHER_KEY });
    expect(lines(40).flatMap(({ msg }) => (msg.includes('ENCRYPTION_KEY') ? [msg] : []))).toEqual([
      'ENCRYPTION_KEY does not open some of the stored keys: add the one that they were made under',
    ]);
  });

  it('readiness and the log say why a store is not available, without a secret', async () => {
    const wrong = new URL(database.url);
    wrong.username = 'nobody_at_all';
    wrong.password = 'secret-of-postgres';
    const nothing = new URL(database.url);
    nothing.port = '1';
    const missing = new URL(database.url);
    missing.pathname += '_missing';
    const encrypted = new URL(database.url);
    encrypted.searchParams.set('sslmode', 'require');
    const postgresCases: readonly (readonly [string, RegExp])[] = [
      [
        wrong.href,
        /^(password authentication failed for user nobody_at_all|role nobody_at_all does not exist)$/,
      ],
      [nothing.href, /^connection refused: nothing listens/],
      [missing.href, /^database tollgate_\w+_missing does not exist$/],
      [encrypted.href, /^the server does not speak TLS$/],
    ];
    const redisCases: readonly (readonly [string, RegExp])[] = [
      [redis.url.replace('redis://', 'redis://:secret-of-redis@'), /^wrong user name or password$/],
      [redis.url, /^a password is required, and none is in the URL$/],
      ['redis://127.0.0.1:1', /^connection refused: nothing listens/],
      ['redis://name.invalid:6379', /^host name (not found|could not be looked up)$/],
    ];
    for (const [index, [databaseUrl, postgresReason]] of postgresCases.entries()) {
      const [redisUrl = '', redisReason = /$^/] = redisCases[index] ?? [];
      gateway = await startInProcess(
        { ...settings, DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
        { isReady: false },
      );
      for (const [component, reason] of [
        ['postgres', postgresReason],
        ['redis', redisReason],
      ] as const) {
        // A store that takes long to say why is called "not connected" before.
        await until(() =>
          lines(50).some((line) => line.component === component && reason.test(line.reason ?? '')),
        );
        await until(async () => reason.test((await components())[component] ?? ''));
      }
      expect(gateway.output()).not.toMatch(/secret-of-|right-password/);
      await gateway.stop();
    }
  });
});
