import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { copyRecordsInto } from '../support/data-directory.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import {
  ENCRYPTION_KEY,
  MAIN,
  ROOT_TOKEN,
  type RunningGateway,
  runGateway,
  spawnNode,
} from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { until } from '../support/until.ts';

let fleet: Fleet;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-config-file-'));
  fleet = await startInProcessFleet(1);
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Started beside the fleet, on its stores. */
const started: RunningGateway[] = [];
afterEach(() => Promise.all(started.splice(0).map((gateway) => gateway.stop())));

let files = 0;
async function fileWith(
  content: string,
): Promise<{ readonly CONFIG_FILE: string; readonly CONFIG_OWNER: string }> {
  files += 1;
  const file = join(directory, `gateway-${files}.yaml`);
  await writeFile(file, content);
  return { CONFIG_FILE: file, CONFIG_OWNER: `file-${files}` };
}

async function start(settings: Readonly<Record<string, string>>, isReady = true): Promise<RunningGateway> {
  const gateway = await startInProcess({ ...fleet.environment, ...settings }, { isReady });
  started.push(gateway);
  return gateway;
}

async function get(path: string, gateway = fleet.replicas[0]) {
  const response = await fetch(`${gateway?.url}${path}`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
  return (await response.json()) as any;
}

async function keyOf(externalId: string) {
  return (await get(`/consumer-api-key?externalId=${externalId}`)).apiKeys[0];
}

async function entriesAbout(targetId: string) {
  return (await get(`/tollgate/audit-log?targetId=${targetId}`)).entries;
}

async function patch(id: string, body: object): Promise<void> {
  const response = await fetch(`${fleet.replicas[0]?.url}/consumer-api-key/${id}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
}

function yamlOf(prefix: string, more = ''): string {
  return `
plans:
  - {rateLimitId: ${prefix}-gold, limit: 10, period: hour}
keys:
  - {externalId: ${prefix}-app, name: app, rateLimitId: ${prefix}-gold${more}}
`;
}

describe('CONFIG_FILE', () => {
  it('is applied once by replicas that start together, and not at their next start', async () => {
    const settings = await fileWith(yamlOf('a'));
    const replicas = await Promise.all([start(settings), start(settings), start(settings)]);
    const key = await keyOf('a-app');
    expect(key).toMatchObject({ rateLimitId: 'a-gold', managedBy: settings.CONFIG_OWNER });
    const actor = { type: 'config', adminTokenId: null, name: settings.CONFIG_OWNER };
    expect(await entriesAbout(key.consumerApiKeyId)).toMatchObject([{ action: 'key.create', actor }]);
    expect(await entriesAbout('a-gold')).toMatchObject([{ action: 'plan.create', actor }]);
    const applying = replicas.filter((replica) => replica.output().includes('CONFIG_FILE was applied'));
    expect(applying).toHaveLength(1);
    for (const replica of replicas) expect(replica.output()).not.toMatch(/tg_[0-9A-Za-z]{36}/);
    await patch(key.consumerApiKeyId, { enabled: false });
    await start(settings);
    expect(await keyOf('a-app')).toMatchObject({ enabled: false });
    expect(await entriesAbout(key.consumerApiKeyId)).toHaveLength(2);
  });

  it('makes webhooks, whose secrets are not logged', async () => {
    const webhook = (events: string) => `
webhooks:
  - {externalId: of-a-file, url: 'https://1.1.1.1/in', events: [${events}], enabled: false}
`;
    const settings = await fileWith(webhook('tollgate.key.created'));
    const replica = await start(settings);
    const managed = async () => {
      const { webhooks } = await get('/tollgate/webhook');
      return webhooks.filter((each: { managedBy: string }) => each.managedBy === settings.CONFIG_OWNER);
    };
    const [made, ...others] = await managed();
    expect([made, others]).toMatchObject([{ externalId: 'of-a-file', events: ['tollgate.key.created'] }, []]);
    expect(replica.output()).not.toContain('whsec_');
    await writeFile(settings.CONFIG_FILE, webhook("'tollgate.plan.*'"));
    await start(settings);
    const { webhookId, secretHint } = made;
    expect(await managed()).toMatchObject([{ webhookId, secretHint, events: ['tollgate.plan.*'] }]);
  });

  it('keeps a replica from becoming ready while it is in conflict with what there is', async () => {
    const settings = await fileWith(yamlOf('b'));
    await start(settings);
    const { consumerApiKeyId } = await keyOf('b-app');
    await patch(consumerApiKeyId, { enabled: false });
    await writeFile(settings.CONFIG_FILE, yamlOf('b', ', tags: [new]'));
    const replica = await start(settings, false);
    await until(async () => {
      const response = await fetch(`${replica.opsUrl}/readyz`);
      const text = await response.text();
      return !response.ok && text.includes('CONFIG_FILE can not be applied: key b-app: changed elsewhere');
    });
    await until(() => replica.output().includes('CONFIG_FILE can not be applied'));
    expect(await keyOf('b-app')).toMatchObject({ enabled: false, tags: [] });
    await patch(consumerApiKeyId, { enabled: true });
    await until(async () => (await fetch(`${replica.opsUrl}/readyz`)).ok);
    expect(await keyOf('b-app')).toMatchObject({ tags: ['new'] });
  });

  it('takes over and deletes only where the settings say so', async () => {
    const settings = await fileWith(yamlOf('c'));
    await start(settings);
    const other = await fileWith(yamlOf('c', ', tags: [taken]'));
    await start({ ...other, CONFIG_FORCE: 'true' });
    expect(await keyOf('c-app')).toMatchObject({ managedBy: other.CONFIG_OWNER, tags: ['taken'] });
    await writeFile(other.CONFIG_FILE, '{}');
    await start(other);
    expect(await keyOf('c-app')).toBeDefined();
    await start({ ...other, CONFIG_PRUNE: 'true' });
    expect(await keyOf('c-app')).toBeUndefined();
  });

  it.each([
    ['a process', '1'],
    ['several workers', '2'],
  ])('with faults ends %s with code 78 and names each with its path', async (_what, WORKERS) => {
    const file = await fileWith(
      'keys: [{externalId: a, name: n, overrides: {main: {limit: 0}}}, {externalId: a, nam: n}]',
    );
    const settings = { WORKERS, PORT: String(await freePort()) };
    const { code, output } = await runGateway({ ...fleet.environment, ...file, ...settings });
    expect(code).toBe(78);
    expect(output).toContain('CONFIG_FILE: The configuration has 3 fault(s):');
    expect(output).toContain('  - keys[0].overrides.main.limit: must be an integer');
    expect(output).toContain('  - keys[1].nam: is not a field that is known here. Did you mean "name"?');
  });

  it('that can not be read ends the process with a sentence', async () => {
    const settings = { CONFIG_FILE: join(directory, 'nothing') };
    const { code, output } = await runGateway({ ...fleet.environment, ...settings });
    expect({ code, output }).toMatchObject({
      code: 78,
      output: expect.stringContaining('can not be read (ENOENT)'),
    });
  });

  it('makes no secret that would be shown to no one', async () => {
    const settings = await fileWith(yamlOf('d'));
    const replica = await start({ ...settings, SECRET_REVEAL: 'once' }, false);
    await until(() => replica.output().includes('keys[0].secretHash: is required for a new key'));
    expect(await keyOf('d-app')).toBeUndefined();
    const value = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
    await writeFile(settings.CONFIG_FILE, yamlOf('d', `, secretHash: {algorithm: sha256, value: ${value}}`));
    const mended = await start({ ...settings, SECRET_REVEAL: 'once' });
    expect(mended.output()).not.toContain(value);
    expect(await keyOf('d-app')).toBeDefined();
  });

  it('is not applied for an owner whose name is a secret', async () => {
    const settings = await fileWith(yamlOf('e'));
    const secret = createSecret('tg', systemRandom);
    const replica = await start({ ...settings, CONFIG_OWNER: secret }, false);
    await until(() => replica.output().includes('CONFIG_OWNER must be without a secret in it; this one has'));
    expect(await keyOf('e-app')).toBeUndefined();
  });

  it('does not hold up SIGTERM while it is read: the start ends with code 143', async () => {
    const path = join(directory, 'waits.yaml');
    await promisify(execFile)('mkfifo', [path]);
    const { child, output } = spawnNode(MAIN, {
      ...fleet.environment,
      CONFIG_FILE: path,
      CONFIG_OWNER: 'waits',
    });
    const ended = once(child, 'exit');
    // Resolves when the gateway has opened it as well, to read.
    const writing = await open(path, 'w');
    child.kill('SIGTERM');
    await until(() => output().includes('stopped during the start'));
    // A process that ends waits for the threads that read files.
    await writing.close();
    expect(await ended).toEqual([143, null]);
  });

  it('is applied to the embedded store, too', async () => {
    const settings = await fileWith(yamlOf('e'));
    const { BACKEND_URL = '' } = fleet.environment;
    const DATA_DIR = join(directory, 'data');
    await copyRecordsInto(DATA_DIR);
    const replica = await startInProcess({ ...settings, BACKEND_URL, ROOT_TOKEN, ENCRYPTION_KEY, DATA_DIR });
    started.push(replica);
    expect(await get('/tollgate/config', replica)).toMatchObject({
      plans: [{ rateLimitId: 'default' }, { rateLimitId: 'e-gold' }],
      keys: [{ externalId: 'e-app', name: 'app', rateLimitId: 'e-gold' }],
    });
  });
});
