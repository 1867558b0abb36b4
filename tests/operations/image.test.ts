import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  access,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { satisfies } from 'semver';
import { readRecordSettings, readSettings, SETTINGS } from '../../src/settings/settings.ts';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { createTestDatabase, testRedisUrl } from '../support/stores.ts';
import { readCompose } from './compose.ts';

const run = promisify(execFile);
const HAS_IPV6 = networkInterfaces().lo?.some(({ address }) => address === '::1') === true;

/** The instructions of the Dockerfile, continued lines joined, comments left out. */
async function instructions(): Promise<readonly (readonly [name: string, rest: string])[]> {
  const text = await readFile('Dockerfile', 'utf8');
  return text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [, name = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
      return [name, rest] as const;
    });
}

async function values(name: string): Promise<readonly string[]> {
  return (await instructions()).filter(([each]) => each === name).map(([, rest]) => rest);
}

/** What was built of the Dockerfile. */
interface Image {
  readonly directory: string;
  /** What `ENV` sets, with the directory in the place of `/app`. */
  readonly environment: Record<string, string>;
}

/**
 * Does what the Dockerfile says in a directory for each stage, and resolves with the last one. A stage on top of another has that one's directory,
 * because Node finds what it compiled by the path of the source. The modules that build the console are those of this checkout, which the same command
 * took from the same lock file: installing them once more takes longer than all the rest.
 */
async function buildImage(root: string): Promise<Image> {
  const stages = new Map<string, string>();
  let stage = root;
  let variables: readonly string[] = [];
  for (const [name, rest] of await instructions()) {
    if (name === 'FROM') {
      const [, from = '', as = 'image'] = /^(\S+)(?: AS (\w+))?$/.exec(rest) ?? [];
      if (!stages.has(from)) variables = [];
      stage = stages.get(from) ?? join(root, as);
      stages.set(as, stage);
      await mkdir(stage, { recursive: true });
    } else if (name === 'ENV') variables = [...variables, rest];
    else if (name === 'COPY') await copyInto(stage, rest, stages);
    else if (name === 'RUN' && rest === 'npm ci --ignore-scripts')
      await symlink(resolve('node_modules'), join(stage, 'node_modules'));
    else if (name === 'RUN') {
      const env = { ...PREFER_OFFLINE, ...environmentIn(stage, variables) };
      await run('sh', ['-ec', rest], { cwd: stage, env });
    }
  }
  return { directory: stage, environment: environmentIn(stage, variables) };
}

function environmentIn(directory: string, variables: readonly string[]): Record<string, string> {
  const moved = variables.map((each) =>
    each.replaceAll('/app', directory).replace('$PATH', process.env.PATH ?? ''),
  );
  return Object.fromEntries(moved.map((each) => each.split('=', 2)));
}

/** What was downloaded for this checkout is not downloaded once more. */
const PREFER_OFFLINE = { ...process.env, npm_config_prefer_offline: 'true' };

async function copyInto(stage: string, copy: string, stages: ReadonlyMap<string, string>): Promise<void> {
  const [, other, source = '', target = ''] =
    /^(?:--chown=0:0 )?--from=(\w+) \/app\/(\S+) (\S+)$/.exec(copy) ?? [];
  if (other !== undefined) {
    const from = stages.get(other) ?? '';
    if (from !== stage) await cp(join(from, source), join(stage, target), { recursive: true });
    return;
  }
  for (const each of copy.split(' ').slice(0, -1)) await cp(each, join(stage, each), { recursive: true });
}

/** The exit code of the health check's command with the ops port at `port`, and the settings of hosts. */
async function healthCheck(port: number, hosts: Readonly<Record<string, string>> = {}): Promise<number> {
  const [check = ''] = await values('HEALTHCHECK');
  const [program, ...args] = JSON.parse(check.slice(check.indexOf('['))) as string[];
  expect(program).toBe('node');
  const env = { ...process.env, OPS_PORT: String(port), ...hosts };
  return run(process.execPath, args, { env }).then(
    () => 0,
    (error: { code: number }) => error.code,
  );
}

describe('the image', () => {
  it('is built in stages on an exact version of a Node that meets `engines`', async () => {
    const [pinned = ''] = await values('ARG');
    const [, version = '', major] =
      /^NODE_IMAGE=node:((\d+)\.\d+\.\d+)-alpine\d+\.\d+@sha256:[0-9a-f]{64}$/.exec(pinned) ?? [];
    const { engines } = JSON.parse(await readFile('package.json', 'utf8')) as { engines: { node: string } };
    expect([version, satisfies(version, engines.node)]).toEqual([version, true]);
    // Even majors are the ones with long-term support.
    expect(Number(major) % 2).toBe(0);
    expect(await values('FROM')).toEqual([
      expect.stringMatching(/^\$\{NODE_IMAGE\} AS console$/),
      expect.stringMatching(/^\$\{NODE_IMAGE\} AS dependencies$/),
      expect.stringMatching(/^\$\{NODE_IMAGE\} AS app$/),
      'app AS compiled',
      'app',
    ]);
  });

  it('holds production dependencies only, runs as no user, with nothing to write to', async () => {
    const all = await instructions();
    const stage = (name: string) => all.findIndex(([, rest]) => rest.endsWith(` AS ${name}`));
    const commands = all
      .slice(stage('dependencies'))
      .filter(([name, rest]) => name === 'RUN' && rest.includes('npm'));
    expect(commands).toEqual([['RUN', expect.stringMatching(/^npm ci --omit=dev --omit=optional /)]]);
    expect(stage('console')).toBeLessThan(stage('dependencies'));
    expect((await values('COPY')).filter((copy) => copy.includes('--from'))).toEqual([
      '--from=dependencies /app/node_modules ./node_modules',
      '--from=console /app/dist/console ./dist/console',
      '--from=console /app/dist/portal ./dist/portal',
      '--chown=0:0 --from=compiled /app/node_modules/.cache ./node_modules/.cache',
    ]);
    // The user who compiles is the one who runs, because Node keeps what it compiled apart for each user. But what it left belongs to root.
    expect(await values('USER')).toEqual(['1000:1000', 'root', '1000:1000']);
    expect(await values('VOLUME')).toEqual([]);
  });

  it('starts without a shell, so that signals reach the gateway', async () => {
    expect(await values('ENTRYPOINT')).toEqual(['["node"]']);
    expect(await values('CMD')).toEqual(['["--v8-pool-size=1", "src/main.ts"]']);
  });

  it('copies only what .dockerignore lets through, and what exists', async () => {
    const ignored = (await readFile('.dockerignore', 'utf8')).split('\n');
    expect(ignored).toContain('*');
    const sources = (await values('COPY'))
      .filter((copy) => !copy.includes('--from'))
      .flatMap((copy) => copy.split(' ').slice(0, -1));
    expect(sources).toEqual(expect.arrayContaining(['package.json', 'package-lock.json', 'sql', 'src']));
    for (const source of sources) {
      expect([`!${source}`, `!${source.split('/')[0]}`].some((line) => ignored.includes(line))).toBe(true);
      await access(source);
    }
  });

  it('holds all that a gateway needs: its stages, built in separate directories', async () => {
    const image = await mkdtemp(join(await scratchFolder(), 'tollgate-image-'));
    const database = await createTestDatabase();
    try {
      const { directory, environment } = await buildImage(image);
      const { NODE_COMPILE_CACHE: cache = '' } = environment;
      const compiled = await readdir(cache, { recursive: true });
      expect(compiled.length).toBeGreaterThan(1000);
      expect((await run('find', [cache, '!', '-perm', '-a+r', '-o', '-perm', '/go+w'])).stdout).toBe('');
      const tell =
        "process.on('exit', () => console.log('strips types:', process.moduleLoadList.some((name) => name.includes('amaro'))))";
      const gateway = await startGateway(
        {
          ...environment,
          NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(tell)}`,
          AUTO_MIGRATE: 'true',
          BACKEND_URL: 'http://127.0.0.1:1',
          DATABASE_URL: database.url,
          REDIS_URL: testRedisUrl(),
          REDIS_TIMEOUT_MS: '5000',
          SHUTDOWN_DELAY_MS: '0',
          ROOT_TOKEN,
          ENCRYPTION_KEY,
        },
        { main: join(directory, 'src/main.ts') },
      );
      const { secret } = await new Admin(gateway.url).makeKey('in the image');
      expect(await statusOf(gateway.url, secret)).toBe(502);
      const page = await fetch(`${gateway.url}/tollgate/console`);
      expect(await page.text()).toContain('<script type="module"');
      // As the entry point runs `docker run … tollgate keys list`.
      const env = { TOLLGATE_URL: gateway.url, TOLLGATE_TOKEN: ROOT_TOKEN };
      const command = ['tollgate', 'keys', 'list', '-o', 'csv'];
      const { stdout } = await run(process.execPath, command, { cwd: directory, env });
      expect(stdout).toContain(',in the image,');
      expect(await gateway.stop()).toBe(0);
      const loaded = await readdir(cache, { recursive: true });
      // All that it loaded was compiled when the image was built, but for the line that this test added.
      expect(gateway.output()).toContain('strips types: false');
      expect(loaded).toHaveLength(compiled.length + 1);
    } finally {
      await database.drop();
      await rm(image, { recursive: true });
    }
  });

  it('is healthy while the ops port says that it lives', async () => {
    let status = 200;
    const server = createServer((req, res) => {
      res.writeHead(req.url === '/livez' ? status : 404).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await healthCheck(port)).toBe(0);
    status = 500;
    expect(await healthCheck(port)).toBe(1);
    server.close();
    await once(server, 'close');
    expect(await healthCheck(port)).toBe(1);
  });

  it.each([
    ['127.0.0.2', { OPS_HOST: '127.0.0.2', HOST: '127.0.0.3' }],
    ['127.0.0.2', { OPS_HOST: '', HOST: '127.0.0.2' }],
    ['0.0.0.0', { OPS_HOST: '0.0.0.0' }],
    ...(HAS_IPV6 ? [['::1', { OPS_HOST: '::1' }] as const, ['::', { OPS_HOST: '::' }] as const] : []),
  ])('is asked at the address of its ops port: %s with %j', async (address, hosts) => {
    const server = createServer((_req, res) => res.end()).listen(0, address);
    await once(server, 'listening');
    expect(await healthCheck((server.address() as AddressInfo).port, hosts)).toBe(0);
    server.close();
  });

  it('exposes the ports of the defaults', async () => {
    expect(await values('EXPOSE')).toEqual([`${SETTINGS.port.byDefault} ${SETTINGS.opsPort.byDefault}`]);
  });
});

/** Runs the service `secrets` as compose would, with its volumes in other places. */
async function makeSecrets(volume: string, command: unknown, records?: string): Promise<string> {
  const empty = await mkdtemp(join(tmpdir(), 'tollgate-compose-empty-'));
  const args = (Array.isArray(command) ? command : []).map((argument: string) =>
    argument
      .replace('/make-secrets.ts', 'k8s/compose/make-secrets.ts')
      .replace('/run/tollgate', volume)
      .replace('/records', records ?? empty)
      .replace('--owned-by=1000', `--owned-by=${process.getuid?.()}`),
  );
  try {
    return (await run(process.execPath, args)).stdout;
  } finally {
    await rm(empty, { recursive: true });
  }
}

describe('docker compose up', () => {
  it('starts two gateways, HAProxy, the stores and a backend', async () => {
    const { services } = await readCompose();
    expect(Object.keys(services)).toEqual(
      expect.arrayContaining(['gateway', 'haproxy', 'postgres', 'redis', 'backend']),
    );
    expect(services.gateway?.deploy?.replicas).toBe(2);
    for (const name of ['gateway', 'migrate', 'backend']) {
      expect(services[name]).toMatchObject({ build: '.', read_only: true, cap_drop: ['ALL'] });
    }
  });

  it('makes its secrets before anything reads them, with settings valid in production', async () => {
    const { gateway, migrate, secrets, postgres } = (await readCompose()).services;
    const volume = await mkdtemp(join(tmpdir(), 'tollgate-compose-'));
    try {
      await makeSecrets(volume, secrets?.command);
      const inVolume = (environment: object) =>
        Object.fromEntries(
          Object.entries(environment).map(([name, value]) => [
            name,
            String(value).replace('/run/tollgate', volume),
          ]),
        );
      const known = Object.values(SETTINGS).flatMap(({ variable, secret }) =>
        secret ? [variable, `${variable}_FILE`] : [variable],
      );
      const settings = inVolume(gateway?.environment ?? {});
      expect(Object.keys(settings).filter((name) => !known.includes(name))).toEqual([]);
      const { shutdownDelayMs, shutdownDrainMs, databaseUrl } = readSettings({
        ...settings,
        NODE_ENV: 'production',
      });
      expect(Number.parseInt(gateway?.stop_grace_period ?? '', 10) * 1000).toBeGreaterThanOrEqual(
        shutdownDelayMs + shutdownDrainMs + 50_000,
      );
      readRecordSettings({ ...inVolume(migrate?.environment ?? {}), NODE_ENV: 'production' });
      const passwordFile = inVolume(postgres?.environment ?? {}).POSTGRES_PASSWORD_FILE ?? '';
      expect(new URL(databaseUrl ?? '').password).toBe((await readFile(passwordFile, 'utf8')).trim());
    } finally {
      await rm(volume, { recursive: true });
    }
  });

  it('makes each secret once, and none beside records that it could not open', async () => {
    const { secrets } = (await readCompose()).services;
    const [volume, other, records] = await Promise.all(
      ['volume', 'other', 'records'].map((name) => mkdtemp(join(tmpdir(), `tollgate-compose-${name}-`))),
    );
    if (volume === undefined || other === undefined || records === undefined)
      throw new Error('no directories');
    try {
      const output = await makeSecrets(volume, secrets?.command);
      const token = await readFile(join(volume, 'secrets/ROOT_TOKEN'), 'utf8');
      expect(output).toContain(`cat ${join(volume, 'secrets/ROOT_TOKEN')}`);
      expect(output).not.toContain(token.trim());
      for (const name of await readdir(join(volume, 'secrets'))) {
        expect([name, (await stat(join(volume, 'secrets', name))).mode & 0o777]).toEqual([name, 0o600]);
      }
      await writeFile(join(records, 'PG_VERSION'), '18');
      await makeSecrets(volume, secrets?.command, records);
      expect(await readFile(join(volume, 'secrets/ROOT_TOKEN'), 'utf8')).toBe(token);
      await expect(makeSecrets(other, secrets?.command, records)).rejects.toMatchObject({
        code: 1,
        stdout: expect.stringContaining('the secrets that open it are gone'),
      });
      expect(await readdir(other)).toEqual([]);
    } finally {
      await Promise.all([volume, other, records].map((directory) => rm(directory, { recursive: true })));
    }
  });

  it('holds no secret, and publishes nothing beyond this machine by default', async () => {
    const text = await readFile('docker-compose.yml', 'utf8');
    expect(text).not.toMatch(/(PASSWORD|TOKEN|KEY|SECRET): *\S/);
    const { services } = await readCompose();
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
    expect(ports).toEqual(expect.arrayContaining(['127.0.0.1:8080:8080', '127.0.0.1:8081:8081']));
    expect(services.gateway?.environment?.ADMIN_PORT).toBe(8081);
  });

  it('keeps every counter: Redis evicts nothing and writes to disk', async () => {
    const command = String((await readCompose()).services.redis?.command);
    expect(command).toContain('--maxmemory-policy noeviction');
    expect(command).toContain('--appendonly yes');
    // A snapshot that can't be made, as without memory for a fork, would end all writes, although the file of appended commands has them.
    expect(command).toContain('--save ""');
  });

  it('pins every image by digest, and mounts files that exist', async () => {
    for (const { image = '', build, volumes = [] } of Object.values((await readCompose()).services)) {
      expect(build ?? image).toMatch(/^\.$|^[a-z0-9_/]+:v?\d+(\.\d+){1,2}(-alpine)?@sha256:[0-9a-f]{64}$/);
      const mounted = volumes.filter((volume) => volume.startsWith('./'));
      await Promise.all(mounted.map((volume) => access(String(volume.split(':')[0]))));
    }
  });
});
