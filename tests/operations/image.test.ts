import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { access, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { readRecordSettings, readSettings, SETTINGS } from '../../src/config.ts';
import { readCompose } from './compose.ts';

const run = promisify(execFile);

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

/** The exit code of the health check's command with the ops port at `port`. */
async function healthCheck(port: number): Promise<number> {
  const [check = ''] = await values('HEALTHCHECK');
  const [program, ...args] = JSON.parse(check.slice(check.indexOf('['))) as string[];
  expect(program).toBe('node');
  const env = { ...process.env, OPS_PORT: String(port) };
  return run(process.execPath, args, { env }).then(
    () => 0,
    (error: { code: number }) => error.code,
  );
}

describe('the image', () => {
  it('is built in two stages on an exact version of a Node that meets `engines`', async () => {
    const [pinned = ''] = await values('ARG');
    const [, major, minor] = /^NODE_IMAGE=node:(\d+)\.(\d+)\.\d+-alpine\d+\.\d+$/.exec(pinned) ?? [];
    const { engines } = JSON.parse(await readFile('package.json', 'utf8')) as { engines: { node: string } };
    const [leastMajor, leastMinor] = engines.node.replace('>=', '').split('.');
    expect(Number(major) * 1000 + Number(minor)).toBeGreaterThanOrEqual(
      Number(leastMajor) * 1000 + Number(leastMinor),
    );
    // Even majors are the ones with long-term support.
    expect(Number(major) % 2).toBe(0);
    expect(await values('FROM')).toEqual([
      expect.stringMatching(/^\$\{NODE_IMAGE\} AS /),
      expect.stringMatching(/^\$\{NODE_IMAGE\}$/),
    ]);
  });

  it('holds production dependencies only, and runs as nobody in particular with nothing to write to', async () => {
    expect((await values('RUN')).filter((command) => command.includes('npm'))).toEqual([
      expect.stringMatching(/^npm ci --omit=dev /),
    ]);
    expect(await values('USER')).toEqual(['1000:1000']);
    expect((await values('COPY')).filter((copy) => copy.includes('--chown'))).toEqual([]);
    expect(await values('VOLUME')).toEqual([]);
  });

  it('starts without a shell, so that signals reach the gateway', async () => {
    expect(await values('ENTRYPOINT')).toEqual(['["node"]']);
    expect(await values('CMD')).toEqual(['["src/main.ts"]']);
  });

  it('copies only what .dockerignore lets through, and what exists', async () => {
    const ignored = (await readFile('.dockerignore', 'utf8')).split('\n');
    expect(ignored).toContain('*');
    const sources = (await values('COPY'))
      .filter((copy) => !copy.startsWith('--from'))
      .flatMap((copy) => copy.split(' ').slice(0, -1));
    expect(sources).toEqual(expect.arrayContaining(['package.json', 'package-lock.json', 'sql', 'src']));
    for (const source of sources) {
      expect(ignored).toContain(`!${source}`);
      await access(source);
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

  it('exposes the ports of the defaults', async () => {
    expect(await values('EXPOSE')).toEqual([`${SETTINGS.port.byDefault} ${SETTINGS.opsPort.byDefault}`]);
  });
});

describe('docker compose up', () => {
  it('starts everything: two gateways, HAProxy, the stores, a backend, monitoring', async () => {
    const { services } = await readCompose();
    expect(Object.keys(services)).toEqual(
      expect.arrayContaining(['gateway', 'haproxy', 'postgres', 'redis', 'backend', 'prometheus', 'grafana']),
    );
    expect(services.gateway?.deploy?.replicas).toBe(2);
    for (const name of ['gateway', 'migrate', 'backend']) {
      expect(services[name]).toMatchObject({ build: '.', read_only: true, cap_drop: ['ALL'] });
    }
  });

  it('has settings that the gateway and the migration accept in production', async () => {
    const { gateway, migrate } = (await readCompose()).services;
    const asText = (environment: object) =>
      Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));
    const known: readonly string[] = Object.values(SETTINGS).map(({ variable }) => variable);
    const settings = asText(gateway?.environment ?? {});
    expect(Object.keys(settings).filter((name) => !known.includes(name))).toEqual([]);
    const { shutdownDelayMs, shutdownDrainMs } = readSettings({ ...settings, NODE_ENV: 'production' });
    expect(Number.parseInt(gateway?.stop_grace_period ?? '', 10) * 1000).toBeGreaterThanOrEqual(
      shutdownDelayMs + shutdownDrainMs + 40_000,
    );
    readRecordSettings({ ...asText(migrate?.environment ?? {}), NODE_ENV: 'production' });
  });

  it('keeps every counter: Redis evicts nothing and writes to disk', async () => {
    const command = String((await readCompose()).services.redis?.command);
    expect(command).toContain('--maxmemory-policy noeviction');
    expect(command).toContain('--appendonly yes');
  });

  it('uses exact versions, and files that exist', async () => {
    for (const { image = '', build, volumes = [] } of Object.values((await readCompose()).services)) {
      expect(build ?? image).toMatch(/^\.$|:v?\d+\.\d+\.\d+(-alpine)?$|^postgres:\d+\.\d+-alpine$/);
      const mounted = volumes.filter((volume) => volume.startsWith('./'));
      await Promise.all(mounted.map((volume) => access(String(volume.split(':')[0]))));
    }
  });
});
