import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { Ajv } from 'ajv';
import { satisfies } from 'semver';
import { parse } from 'yaml';
import { readSettings } from '../../src/settings/settings.ts';
import { requireProgram } from '../support/debian-package.ts';
import { documentedBlocks } from '../support/documented-commands.ts';
import { readCompose } from './compose.ts';

const run = promisify(execFile);

/** The faults of a compose file by the JSON schema of the compose specification, which the linter dclint brings. */
async function faultsOf(file: object): Promise<readonly string[]> {
  const schema = JSON.parse(await readFile('node_modules/dclint/schemas/compose.schema.json', 'utf8'));
  // The schema of the draft itself has its id with http.
  const { $schema: _, ...rules } = schema;
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(rules);
  validate(file);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

describe('docker-compose.yml', () => {
  it('meets the schema of the compose specification', async () => {
    const compose = parse(await readFile('docker-compose.yml', 'utf8'), { merge: true });
    expect(await faultsOf(compose)).toEqual([]);
    const { gateway } = compose.services;
    expect(await faultsOf({ services: { gateway: { ...gateway, comand: [] } } })).not.toEqual([]);
  });

  it.each([
    ['portal.md', { portal: 'on', portalName: 'Acme API' }],
    ['sign-in.md', { oidcClientId: 'tollgate', rootTokenSignIn: 'off' }],
  ])('takes the addition of docs/%s, with settings that the gateway accepts', async (page, expected) => {
    const [block, ...others] = (await documentedBlocks(page)).filter(({ language }) => language === 'yaml');
    expect(others).toEqual([]);
    const addition = parse(block?.text ?? '');
    const { services } = await readCompose();
    const gateway = {
      ...services.gateway,
      ...addition.services.gateway,
      environment: { ...services.gateway?.environment, ...addition.services.gateway.environment },
    };
    expect(await faultsOf({ ...addition, services: { ...services, gateway } })).toEqual([]);
    const mounted = new Map([
      ...Object.keys(addition.secrets ?? {}).map((name) => [`/run/secrets/${name}`, 'a secret'] as const),
      ['/run/tollgate/secrets/ROOT_TOKEN', 'a-root-token-of-enough-characters'],
      ['/run/tollgate/secrets/ENCRYPTION_KEY', Buffer.alloc(32, 7).toString('base64')],
      ['/run/tollgate/secrets/DATABASE_URL', 'postgres://postgres:5432/tollgate'],
    ]);
    // What the gateway reads from mounted files, it has here from the environment.
    const environment = Object.entries(gateway.environment).map(([name, value]) => {
      const content = name.endsWith('_FILE') ? mounted.get(String(value)) : undefined;
      return content === undefined ? [name, String(value)] : [name.replace(/_FILE$/, ''), content];
    });
    expect(readSettings(Object.fromEntries(environment))).toMatchObject(expected);
  });

  it('has monitoring and nginx in profiles, whose services need nothing of another one', async () => {
    const { services } = await readCompose();
    const inProfile = (name: string) =>
      Object.keys(services).filter((service) => services[service]?.profiles?.includes(name));
    expect(inProfile('observability').toSorted()).toEqual(['grafana', 'prometheus', 'redis-exporter']);
    expect(inProfile('nginx')).toEqual(['nginx']);
    for (const { profiles = [], depends_on: needed = {} } of Object.values(services)) {
      const names = Array.isArray(needed) ? needed : Object.keys(needed);
      for (const name of names) {
        expect(services).toHaveProperty([name]);
        expect([[], profiles]).toContainEqual(services[name]?.profiles ?? []);
      }
    }
  });

  it('has the nginx of the docs, with the names of its services, and nginx accepts it', async () => {
    const nginx = await requireProgram('nginx', 'nginx-light');
    const text = await readFile('k8s/compose/nginx.conf', 'utf8');
    const [documented] = (await documentedBlocks('authorize.md')).filter(({ headings }) =>
      headings.includes('### nginx'),
    );
    const local = text
      .replaceAll('gateway:8082', '127.0.0.1:8082')
      .replaceAll('backend:3000', '127.0.0.1:3000');
    expect(local.replaceAll(/^#.*\n/gm, '')).toBe(documented?.text);
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-nginx-'));
    try {
      const file = join(directory, 'nginx.conf');
      await writeFile(file, `error_log stderr; pid ${directory}/pid; events {} http { ${local} }`);
      await run(nginx, ['-t', '-c', file, '-p', directory]);
    } finally {
      await rm(directory, { recursive: true });
    }
    expect((await readCompose()).services.gateway?.environment?.AUTHORIZE_PORT).toBe(8082);
  });

  it('has an nginx that is as new as the docs ask for', async () => {
    const page = await readFile('docs/authorize.md', 'utf8');
    const [, stable, mainline] = /Use nginx (\d+\.\d+\.\d+), (\d+\.\d+\.\d+) or later/.exec(page) ?? [];
    const [, version = ''] =
      /^nginx:([\d.]+)-alpine@/.exec((await readCompose()).services.nginx?.image ?? '') ?? [];
    expect(satisfies(version, `~${stable} || >=${mainline}`)).toBe(true);
  });

  it('provisions Grafana with the data source and the dashboard that it mounts', async () => {
    const [sources, dashboards] = await Promise.all(
      ['datasources', 'dashboards'].map(async (name) =>
        parse(await readFile(`k8s/compose/grafana-${name}.yaml`, 'utf8')),
      ),
    );
    const { grafana, prometheus } = (await readCompose()).services;
    expect(sources.datasources[0].url).toBe('http://prometheus:9090');
    expect(prometheus?.ports).toEqual(['127.0.0.1:9091:9090']);
    const folder = dashboards.providers[0].options.path;
    const home = String(grafana?.environment?.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH);
    expect(home.startsWith(`${folder}/`)).toBe(true);
    expect(grafana?.volumes?.map((volume) => volume.split(':')[1])).toContain(home);
  });
});
