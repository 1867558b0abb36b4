import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { freePort } from '../support/free-port.ts';
import {
  ENCRYPTION_KEY,
  type EndedProcess,
  ROOT_TOKEN,
  type RunningGateway,
  runGateway,
  spawnNode,
  startGateway,
} from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { createMigratedDatabase, createTestDatabase, type TestDatabase } from '../support/stores.ts';

let directory: string;
let gateway: RunningGateway | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-start-'));
});
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
  await rm(directory, { recursive: true, force: true });
});

describe('a start', () => {
  it('with bad settings ends with code 78 and one list of all faults', async () => {
    const { code, output } = await runGateway({
      BACKEND_URL: 'backend',
      PORT: 'http',
      LIMITER_FAILURE_MODE: 'sometimes',
      WORKERS: '0',
      ROOT_TOKEN: 'too-short-to-be-shown',
      REDIS_URL: 'redis://:badly-encoded%zz@127.0.0.1:1',
    });
    expect(code).toBe(78);
    for (const variable of [
      'BACKEND_URL',
      'PORT',
      'LIMITER_FAILURE_MODE',
      'WORKERS',
      'ROOT_TOKEN',
      'REDIS_URL',
    ]) {
      expect(output).toMatch(new RegExp(`^ {2}- ${variable}: `, 'm'));
    }
    expect(output).not.toMatch(/too-short-to-be-shown|badly-encoded/);
  });

  it('with a logo that can not be used ends with code 78 and says why', async () => {
    const logo = join(directory, 'logo.svg');
    await writeFile(logo, '<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>');
    const { code, output } = await runGateway({
      ...{ BACKEND_URL: 'http://127.0.0.1:1', DATA_DIR: join(directory, 'data'), PORT: '0' },
      ...{ PORTAL: 'on', PORTAL_LOGO_FILE: logo },
    });
    expect(code).toBe(78);
    const lines = output.split('\n').filter((line) => line.startsWith('  - '));
    expect(lines).toEqual(['  - PORTAL_LOGO_FILE: the SVG must not have the element <script>']);
  });

  it('in production without shared stores and secrets ends with code 78', async () => {
    const { code, output } = await runGateway({ BACKEND_URL: 'http://127.0.0.1:1', NODE_ENV: 'production' });
    expect(code).toBe(78);
    for (const variable of ['DATABASE_URL', 'REDIS_URL', 'ROOT_TOKEN', 'ENCRYPTION_KEY'])
      expect(output).toContain(`${variable}: is required`);
  });

  it('with --check only says whether its settings and its configuration can be used', async () => {
    const file = join(directory, 'configuration.yaml');
    await writeFile(file, 'plans: 7\n');
    const usable = { BACKEND_URL: 'http://127.0.0.1:1', DATA_DIR: join(directory, 'data') };
    expect(await check(usable)).toEqual({ code: 0, output: '' });
    expect(await readdir(directory)).toEqual(['configuration.yaml']);
    for (const [setting, value] of Object.entries({ BACKEND_URL: 'backend', CONFIG_FILE: file })) {
      const { code, output } = await check({ ...usable, [setting]: value });
      expect([code, output]).toEqual([78, expect.stringContaining(setting)]);
    }
  });
});

async function check(environment: Readonly<Record<string, string>>): Promise<EndedProcess> {
  const { child, output } = spawnNode(resolve('src/main.ts'), environment, { args: ['--check'] });
  const [code] = await once(child, 'close');
  return { code, output: output() };
}

describe('a start with records on a server', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await createMigratedDatabase();
  });
  afterEach(async () => {
    await gateway?.stop();
    await database.drop();
  });

  it('responds to management requests with 503 before its tables exist', async () => {
    const empty = await createTestDatabase();
    try {
      gateway = await startInProcess(
        {
          BACKEND_URL: 'http://127.0.0.1:1',
          DATABASE_URL: empty.url,
          ROOT_TOKEN,
          ENCRYPTION_KEY,
          AUTO_MIGRATE: 'false',
        },
        { isReady: false },
      );
      for (const path of ['/consumer-api-key', '/rate-limit']) {
        const { status, body } = await new Admin(gateway.url).call('GET', path);
        expect([status, body.code]).toEqual([503, 'store_unavailable']);
      }
    } finally {
      await gateway?.stop();
      await empty.drop();
    }
  });

  it('says that it keeps an unused connection for KEEP_ALIVE_MS', async () => {
    gateway = await startInProcess({
      BACKEND_URL: 'http://127.0.0.1:1',
      DATABASE_URL: database.url,
      ROOT_TOKEN,
      ENCRYPTION_KEY,
      KEEP_ALIVE_MS: '620000',
    });
    const client = await RawPeer.connect(Number(new URL(gateway.url).port));
    client.send('GET / HTTP/1.1\r\nHost: gateway\r\n\r\n');
    expect(await client.head()).toMatch(/^HTTP\/1\.1 401 [\s\S]*\r\nKeep-Alive: timeout=620\b/i);
    client.destroy();
  });

  it('with a DEFAULT_PLAN_ID that names no plan responds with 503 and logs it once', async () => {
    gateway = await startInProcess({
      BACKEND_URL: 'http://127.0.0.1:1',
      DATABASE_URL: database.url,
      ROOT_TOKEN,
      ENCRYPTION_KEY,
      DEFAULT_PLAN_ID: 'gone',
    });
    const { url } = gateway;
    const admin = new Admin(url);
    const { id, secret } = await admin.makeKey('without a plan');
    const whoami = await fetch(`${url}/tollgate/whoami`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
    expect(await whoami.json()).toMatchObject({ settings: { defaultPlanId: 'gone', publicPort: null } });
    for (let sent = 0; sent < 3; sent += 1) expect(await statusOf(url, secret)).toBe(503);
    expect(gateway.output().match(/"level":40[^\n]*DEFAULT_PLAN_ID names no plan/g)).toHaveLength(1);

    await admin.bind(id, 'default');
    expect(await statusOf(url, secret)).toBe(502);
  });

  it('by npm start ends with a signal to npm, and strips no types a second time', async () => {
    const tell =
      "process.on('exit', () => console.log('strips types:', process.moduleLoadList.some((name) => name.includes('amaro'))))";
    const settings = {
      BACKEND_URL: 'http://127.0.0.1:1',
      DATABASE_URL: database.url,
      ROOT_TOKEN,
      ENCRYPTION_KEY,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(tell)}`,
    };
    for (const expected of [true, false]) {
      const cache = { NODE_COMPILE_CACHE: directory };
      gateway = await startGateway(
        { ...settings, ...cache },
        { main: process.env.npm_execpath ?? '', args: ['start'] },
      );
      expect(await gateway.stop()).toBe(0);
      expect(gateway.output()).toContain('stopped, usage written');
      // npm itself strips none.
      expect(gateway.output().includes('strips types: true')).toBe(expected);
    }
  });

  it('with ADMIN_PORT serves the management API on that port only', async () => {
    const port = await freePort();
    gateway = await startInProcess({
      PORT: String(port),
      BACKEND_URL: 'http://127.0.0.1:1',
      DATABASE_URL: database.url,
      ROOT_TOKEN,
      ENCRYPTION_KEY,
      ADMIN_PORT: '0',
    });
    const adminPort = /"adminPort":(\d+)/.exec(gateway.output())?.[1];
    const headers = { authorization: `Bearer ${ROOT_TOKEN}` };
    expect((await fetch(`http://127.0.0.1:${adminPort}/consumer-api-key`, { headers })).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${adminPort}/anything`, { headers })).status).toBe(404);
    const whoami = await fetch(`http://127.0.0.1:${adminPort}/tollgate/whoami`, { headers });
    expect(await whoami.json()).toMatchObject({ settings: { publicPort: port } });
    const open = await fetch(`${gateway.url}/consumer-api-key`, { headers });
    expect([open.status, ((await open.json()) as { code: string }).code]).toEqual([401, 'invalid_api_key']);
  });
});
