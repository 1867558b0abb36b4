import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PATIENT_MS } from '../../src/cli/api/session.ts';
import { EXIT_CODES } from '../../src/cli/exit-codes.ts';
import { readSettings, SETTINGS } from '../../src/settings/settings.ts';
import { startLoad } from '../reliability/support/steady-load.ts';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { copyRecordsInto } from '../support/data-directory.ts';
import { requireProgram } from '../support/debian-package.ts';
import { endChild } from '../support/end-child.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { createMigratedDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const PAGE = 'docs/without-kubernetes.md';
/** Longest that a replica takes after the drain to write the last usage and to close everything. */
const CLOSING_MS = 50_000;

/** The code blocks of the page in this language, in order. */
async function blocks(language: string): Promise<readonly string[]> {
  const page = await readFile(PAGE, 'utf8');
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, each]) => each === language)
    .map(([, , text]) => text ?? '');
}

/** The values of a directive of a unit, as systemd reads them for instance 1. */
function valuesOf(unit: string, directive: string): readonly string[] {
  return [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value]) =>
    (value ?? '').replaceAll('%i', '1'),
  );
}

function environmentOf(unit: string): Record<string, string> {
  const assignments = valuesOf(unit, 'Environment').flatMap((line) => line.split(' '));
  return Object.fromEntries(assignments.map((assignment) => assignment.split('=', 2)));
}

describe('the systemd units', () => {
  it('set only what the gateway knows, and are accepted by it', async () => {
    const credentials = await mkdtemp(join(tmpdir(), 'tollgate-credentials-'));
    const secrets = {
      ROOT_TOKEN,
      ENCRYPTION_KEY,
      DATABASE_URL: 'postgres://tollgate:word@127.0.0.1:5432/tollgate',
      REDIS_URL: 'redis://127.0.0.1:6379',
    };
    for (const [name, secret] of Object.entries(secrets)) await writeFile(join(credentials, name), secret);
    const known = Object.values(SETTINGS).flatMap(({ variable }) => [variable, `${variable}_FILE`]);
    const [single = '', template = ''] = await blocks('ini');
    for (const unit of [single, template]) {
      const environment = Object.fromEntries(
        Object.entries(environmentOf(unit)).map(([name, value]) => [name, value.replace('%d', credentials)]),
      );
      const { NODE_ENV: _, NODE_COMPILE_CACHE: compiled, ...ours } = environment;
      expect(Object.keys(ours).filter((name) => !known.includes(name))).toEqual([]);
      expect(compiled).toBe('/opt/tollgate/node_modules/.cache/tollgate');
      const settings = readSettings({ BACKEND_URL: 'https://api.example.com', ...environment });
      const [stopSeconds] = valuesOf(unit, 'TimeoutStopSec');
      expect(Number(stopSeconds) * 1000).toBeGreaterThanOrEqual(
        settings.shutdownDelayMs + settings.shutdownDrainMs + CLOSING_MS,
      );
      expect(valuesOf(unit, 'ExecStart')).toEqual([
        '/usr/local/bin/node --v8-pool-size=1 /opt/tollgate/src/main.ts',
      ]);
      expect(valuesOf(unit, 'RestartPreventExitStatus')).toEqual([String(EXIT_CODES.configuration)]);
      expect(valuesOf(unit, 'SuccessExitStatus')).toEqual([String(EXIT_CODES.startEnded)]);
    }
    expect(valuesOf(template, 'KillMode')).toEqual(['control-group']);
    const loaded = valuesOf(template, 'LoadCredential').map((each) => each.split(':')[0]);
    expect(loaded).toEqual(Object.keys(secrets));
    await rm(credentials, { recursive: true });
  });

  it('start from what the commands of the page have compiled', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-compiled-'));
    const commands = (await blocks('sh')).find((block) => block.includes('--check')) ?? '';
    const { username } = userInfo();
    // Any user may run tests, but only root may be another one.
    const ours = commands
      .replaceAll('node_modules/.cache', directory)
      .replace('runuser -u tollgate -- ', '')
      .replace('-o tollgate', `-o ${username}`)
      .replace('root:', `${username}:`);
    await run('sh', ['-ec', ours]);
    expect((await readdir(directory, { recursive: true })).length).toBeGreaterThan(1000);
    expect((await run('find', [directory, '!', '-perm', '-a+r', '-o', '-perm', '/go+w'])).stdout).toBe('');
    await rm(directory, { recursive: true });
  });

  it('have the ports in the configuration of HAProxy', async () => {
    const [, template = ''] = await blocks('ini');
    const [configuration = ''] = await blocks('haproxy');
    const { PORT, ADMIN_PORT, OPS_PORT } = environmentOf(template);
    expect(configuration).toContain(`server replica1 127.0.0.1:${PORT} port ${OPS_PORT}`);
    expect(configuration).toContain(`server replica1 127.0.0.1:${ADMIN_PORT} port ${OPS_PORT}`);
    // A replica that stops goes on serving for three seconds in production.
    const checks = [...configuration.matchAll(/check inter (\d+)s fall (\d+)/g)];
    expect(checks.map(([, inter, fall]) => Number(inter) * Number(fall) < 3)).toEqual([true, true]);
  });
});

it('the HAProxy of docker-compose.yml lets the same headers through', async () => {
  const [documented = ''] = await blocks('haproxy');
  const shipped = await readFile('k8s/compose/haproxy.cfg', 'utf8');
  for (const frontend of ['public', 'management']) {
    const rules = headerRules(documented, frontend);
    expect(rules.length).toBeGreaterThan(2);
    expect(headerRules(shipped, frontend)).toEqual(rules);
  }
  await run(await requireProgram('haproxy', 'haproxy'), ['-c', '-f', 'k8s/compose/haproxy.cfg']);
});

it('each HAProxy waits for management as long as the tollgate command does', async () => {
  const [documented = ''] = await blocks('haproxy');
  const shipped = await readFile('k8s/compose/haproxy.cfg', 'utf8');
  for (const configuration of [documented, shipped]) {
    const [, name = ''] =
      /^frontend management\n(?: .*\n)* +default_backend (\S+)$/m.exec(configuration) ?? [];
    const [section = ''] = configuration.split(`\nbackend ${name}\n`)[1]?.split(/^\S/m) ?? [];
    const [, seconds] = /^ +timeout server (\d+)s$/m.exec(section) ?? [];
    expect(Number(seconds) * 1000).toBeGreaterThanOrEqual(PATIENT_MS);
  }
});

/** The lines of a frontend that change the headers of requests. */
function headerRules(configuration: string, frontend: string): readonly string[] {
  const [section = ''] = configuration.split(`\nfrontend ${frontend}\n`)[1]?.split(/^\S/m) ?? [];
  return section.split('\n').filter((line) => /^ +(http-request|option forwardfor)/.test(line));
}

describe('the HAProxy configuration, in front of two replicas', () => {
  let fleet: Fleet;
  let admin: Admin;
  let url: string;
  let seen: IncomingHttpHeaders = {};
  let stopHaproxy: () => Promise<void>;

  beforeAll(async () => {
    fleet = await startInProcessFleet(
      2,
      // As the unit's settings in production, where the delay is 3 s.
      { ADMIN_PORT: '0', SHUTDOWN_DELAY_MS: '3000', TRUSTED_PROXIES: '127.0.0.1' },
      (req, res) => {
        seen = req.headers;
        res.end('ok');
      },
    );
    const program = await requireProgram('haproxy', 'haproxy');
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-haproxy-'));
    const [port, adminPort] = [await freePort(), await freePort()];
    const file = join(directory, 'haproxy.cfg');
    await writeFile(file, await configurationFor(fleet, port, adminPort));
    const child = spawn(program, ['-db', '-f', file], { stdio: 'ignore' });
    stopHaproxy = async () => {
      await endChild(child);
      await rm(directory, { recursive: true });
    };
    url = `http://127.0.0.1:${port}`;
    admin = new Admin(`http://127.0.0.1:${adminPort}`);
    await until(() => isUp(url));
    await until(() => isUp(`http://127.0.0.1:${adminPort}`));
  }, 300_000);
  afterAll(async () => {
    await stopHaproxy?.();
    await fleet?.stop();
  });

  it('serves consumers on one port, and administrators on the other only', async () => {
    const { secret } = await admin.makeKey('through HAProxy');
    const response = await fetch(`${url}/hello`, {
      headers: { authorization: `Bearer ${secret}`, 'x-forwarded-for': '192.0.2.1' },
    });
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    expect(seen).toMatchObject({
      'x-forwarded-for': '127.0.0.1, 127.0.0.1',
      'x-forwarded-host': new URL(url).host,
    });
    expect(await statusOf(`${url}/consumer-api-key`, ROOT_TOKEN)).toBe(401);
  });

  it('passes on nothing that a client says of its address, host or scheme', async () => {
    const { secret } = await admin.makeKey('with claims');
    const claims = ['for', 'host', 'proto', 'port', 'server', 'prefix'].map((name) => `X-Forwarded-${name}`);
    const names = [...claims, 'X-Real-IP', 'Forwarded'];
    const headers = new Headers({ authorization: `Bearer ${secret}` });
    for (const name of names) headers.set(name, 'for=claimed.example');
    expect((await fetch(`${url}/hello`, { headers })).status).toBe(200);
    expect(JSON.stringify(seen)).not.toContain('claimed');
    expect(
      Object.keys(seen)
        .filter((name) => /^x-(forwarded|real)-/.test(name))
        .toSorted(),
    ).toEqual(['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto']);
  });

  it('lets no administrator choose the address in the audit log', async () => {
    const plan = { rateLimitId: 'from-elsewhere', description: '', limit: 1, period: 'day' };
    const claimed = { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.7' };
    expect((await admin.call('POST', '/rate-limit/create', plan, claimed)).status).toBe(201);
    const { body } = await admin.call('GET', '/tollgate/audit-log?targetId=from-elsewhere');
    expect(body.entries.map(({ address }: { address: string }) => address)).toEqual(['127.0.0.1']);
  });

  it('loses no request while a replica stops', async () => {
    await admin.makePlan('many', 1_000_000_000, 'hour');
    const { secret } = await admin.makeKey('restarted', 'many');
    const load = startLoad(url, secret, [{ path: '/hello', method: 'GET', clients: 8 }]);
    await until(() => load.responses() > 50);
    await fleet.replicas[0]?.stop();
    const before = load.responses();
    await until(() => load.responses() > before + 50);
    expect((await load.stop()).failures).toEqual([]);
  });
});

/** The page's configuration with the ports of this test. */
async function configurationFor(fleet: Fleet, port: number, adminPort: number): Promise<string> {
  const [configuration = ''] = await blocks('haproxy');
  let text = configuration.replace('bind :80\n', `bind 127.0.0.1:${port}\n`);
  text = text.replace('bind 127.0.0.1:8081\n', `bind 127.0.0.1:${adminPort}\n`);
  // A machine that stands still must not keep it from noticing within the 3 s that a replica that stops goes on serving.
  text = text.replaceAll('check inter 1s ', 'check inter 200ms ');
  // Any user may run tests, but only root may become another one.
  if (process.getuid?.() !== 0) text = text.replace('  user haproxy\n  group haproxy\n', '');
  for (const [index, replica] of fleet.replicas.entries()) {
    const number = index + 1;
    const opsPort = new URL(replica.opsUrl).port;
    const managementPort = /"adminPort":(\d+)/.exec(replica.output())?.[1];
    text = text
      .replaceAll(
        `127.0.0.1:1808${number} port 1909${number}`,
        `127.0.0.1:${new URL(replica.url).port} port ${opsPort}`,
      )
      .replaceAll(
        `127.0.0.1:1818${number} port 1909${number}`,
        `127.0.0.1:${managementPort} port ${opsPort}`,
      );
  }
  expect(text).not.toMatch(/^ +(bind :80|bind 127.0.0.1:8081|server \S+ \S+:1[89][01]8\d)\b/m);
  return text;
}

/** HAProxy has a replica that it takes for ready. */
async function isUp(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ status }) => status !== 503,
    () => false,
  );
}

/** The settings of a gateway with no backend, whose secrets are in its `DATA_DIR`. */
const ALONE = { BACKEND_URL: 'http://127.0.0.1:1', ROOT_TOKEN };

/** Has one process with embedded stores make a key, which is used once, and stops it. `DATA_DIR` is made. */
async function usedByOneProcess(DATA_DIR: string): Promise<{ readonly id: string; readonly secret: string }> {
  await mkdir(DATA_DIR, { recursive: true });
  // As a first start leaves it, which takes seconds of CPU time.
  await copyRecordsInto(DATA_DIR);
  const secrets = JSON.stringify({ rootToken: ROOT_TOKEN, encryptionKey: ENCRYPTION_KEY });
  await writeFile(join(DATA_DIR, 'secrets.json'), secrets, { mode: 0o600 });
  const process = await startInProcess({ ...ALONE, DATA_DIR });
  const key = await new Admin(process.url).makeKey('kept');
  expect(await statusOf(process.url, key.secret)).toBe(502);
  await process.stop();
  return key;
}

/** Runs commands that move the records, within this directory. */
function move(commands: string, directory: string): Promise<{ stdout: string; stderr: string }> {
  const ours = commands
    .replace('systemctl stop tollgate && ', '')
    .replaceAll('/var/lib/tollgate', join(directory, 'lib'))
    .replaceAll('/root/tollgate-before', join(directory, 'before'))
    .replaceAll('/etc/tollgate', directory)
    .replaceAll('/opt/tollgate', '"$CHECKOUT"');
  // Debian's psql warns of a locale that is not installed.
  const env = { ...process.env, LC_ALL: 'C', CHECKOUT: process.cwd() };
  return run('sh', ['-ec', ours], { env });
}

/** The months that have tables. */
const PARTITIONS = `SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_class ON oid = inhrelid
  WHERE relkind = 'r' ORDER BY inhrelid::regclass::text COLLATE "C"`;

/** Of the embedded Postgres in this directory. */
async function partitionsOf(directory: string): Promise<readonly unknown[]> {
  const db = await PGlite.create(directory);
  const { rows } = await db.query<readonly unknown[]>(PARTITIONS, [], { rowMode: 'array' });
  await db.close();
  return rows.flat();
}

describe('the records of one process, as the page moves them to two replicas', () => {
  it('are there with secrets, usage and a whole audit log', async () => {
    await Promise.all([requireProgram('jq', 'jq'), requireProgram('psql', 'postgresql-client')]);
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-moved-'));
    const database = await createMigratedDatabase();
    const { id, secret } = await usedByOneProcess(join(directory, 'lib'));
    // Without the parameters of the tests, which psql does not know.
    const psqlUrl = database.url.replace(/\?.*/, '');
    await writeFile(join(directory, 'DATABASE_URL'), psqlUrl);
    const [keep = '', copy = ''] = (await blocks('sh')).filter((block) => block.includes('tollgate-before'));
    await writeFile(join(directory, 'settings'), 'ROOT_TOKEN_SIGN_IN=off\n');
    const { stdout, stderr } = await move(`${keep}${copy}`, directory);
    expect([stdout, stderr]).toEqual(['All rows are copied.\n', '']);
    const target = await run('psql', [psqlUrl, '-Atc', PARTITIONS]);
    expect(target.stdout.trim().split('\n')).toEqual(await partitionsOf(join(directory, 'before/postgres')));
    const kept = ['ROOT_TOKEN', 'ENCRYPTION_KEY'].map((name) => readFile(join(directory, name), 'utf8'));
    expect(await Promise.all(kept)).toEqual([`${ROOT_TOKEN}\n`, `${ENCRYPTION_KEY}\n`]);

    const replica = await startInProcess({ ...ALONE, ENCRYPTION_KEY, DATABASE_URL: database.url });
    try {
      const admin = new Admin(replica.url);
      expect(await statusOf(replica.url, secret)).toBe(502);
      await until(async () => (await admin.detail(id)).usage.totalRequests === 2);
      expect((await admin.detail(id)).secret).toBe(secret);
      expect((await admin.call('GET', '/tollgate/audit-log/verify')).body).toMatchObject({ valid: true });
    } finally {
      await replica.stop();
      await database.drop();
      await rm(directory, { recursive: true });
    }
  });

  it('leave out a generated secret in place of which the process had one in its settings, at each try', async () => {
    await requireProgram('jq', 'jq');
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-moved-'));
    await mkdir(join(directory, 'lib'));
    const generated = JSON.stringify({ rootToken: ROOT_TOKEN, encryptionKey: 'sealed nothing' });
    await writeFile(join(directory, 'lib/secrets.json'), generated);
    const settings = `ROOT_TOKEN_SIGN_IN=off\nENCRYPTION_KEY=${ENCRYPTION_KEY}\n`;
    await writeFile(join(directory, 'settings'), settings);
    const [keep = ''] = (await blocks('sh')).filter((block) => block.includes('tollgate-before'));
    await move(keep, directory);
    const files = ['ROOT_TOKEN', 'before', 'lib', 'settings', 'settings.before'];
    expect((await readdir(directory)).sort()).toEqual(files);
    expect(await readFile(join(directory, 'ROOT_TOKEN'), 'utf8')).toBe(`${ROOT_TOKEN}\n`);

    // Changed as the page has it, and then from its beginning.
    await writeFile(join(directory, 'settings'), '');
    await move(keep, directory);
    expect((await readdir(directory)).sort()).toEqual(files);
    expect(await readFile(join(directory, 'settings.before'), 'utf8')).toBe(settings);
    expect(await readdir(join(directory, 'before'))).toEqual(['secrets.json']);
    await rm(directory, { recursive: true });
  });
});

describe('a backup of DATA_DIR, as the page makes it', () => {
  it('holds every key and its secret, and starts in another place', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-backup-'));
    const { id, secret } = await usedByOneProcess(join(directory, 'lib/tollgate'));

    const [, archive] = /tar -C \/var\/lib (-czf) /.exec(await readFile(PAGE, 'utf8')) ?? [];
    await run('tar', [
      '-C',
      join(directory, 'lib'),
      archive ?? '',
      join(directory, 'backup.tar.gz'),
      'tollgate',
    ]);
    await mkdir(join(directory, 'restored'));
    await run('tar', ['-C', join(directory, 'restored'), '-xpzf', join(directory, 'backup.tar.gz')]);

    const after = await startInProcess({ ...ALONE, DATA_DIR: join(directory, 'restored/tollgate') });
    try {
      expect((await new Admin(after.url).detail(id)).secret).toBe(secret);
      expect(await statusOf(after.url, secret)).toBe(502);
    } finally {
      await after.stop();
      await rm(directory, { recursive: true });
    }
  });
});
