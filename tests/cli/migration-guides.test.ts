import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import type { RunningGateway } from '../support/gateway.ts';
import { putCommandInto } from './support/command-on-path.ts';
import { Administrator } from './support/run-tollgate.ts';

const run = promisify(execFile);
const EXAMPLES = resolve('docs/examples');

let fleet: Fleet<RunningGateway>;
let tollgate: Administrator;
let directory: string;
const url = (): string => fleet.replicas[0]?.url ?? '';

beforeAll(async () => {
  await Promise.all([requireProgram('curl', 'curl'), requireProgram('jq', 'jq')]);
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-guide-'));
  await putCommandInto(directory);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Runs blocks of a guide in order, in the directory of the test. */
async function play(blocks: readonly string[], settings: Readonly<Record<string, string>> = {}) {
  const env = {
    ...tollgate.environment,
    ...settings,
    PATH: `${directory}${delimiter}${process.env.PATH}`,
    HOME: directory,
  };
  return (await run('sh', ['-c', blocks.join('\n')], { env, cwd: directory })).stdout;
}

const rows = async (name: string): Promise<readonly Record<string, unknown>[]> =>
  (await readFile(join(directory, name), 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('docs/migrate-from-kong.md', () => {
  const page = 'migrate-from-kong.md';
  beforeAll(async () => {
    fleet = await startInProcessFleet(1);
    tollgate = new Administrator(url());
  });
  afterAll(() => fleet?.stop());

  it('brings keys with their limits here, those with short keys by their digests', async () => {
    await copyFile(join(EXAMPLES, 'kong.json'), join(directory, 'kong.json'));
    const made = await play(await documentedCommands('## 2. Make the plans', page));
    expect(made).toBe('kong-10-second-1000-hour\nkong-20-1s-10000-3600s\n');
    const [dryRun = '', forGood = '', byDigest = ''] = await documentedCommands(
      '## 3. Import the keys',
      page,
    );
    expect(JSON.parse(await play([dryRun]))).toMatchObject({ rows: 4, made: 4, rejected: [] });
    expect(await play([`${forGood.trimEnd()} || test $? = 1`])).toMatch(
      /^row,code,field,message\n3,invalid_body,secret,/,
    );
    expect(await rows('rejected.jsonl')).toMatchObject([{ name: 'partner' }]);
    expect(JSON.parse(await play([byDigest]))).toMatchObject({ made: 1, rejected: [] });

    for (const { secret } of await rows('keys.jsonl'))
      expect(await statusOf(url(), String(secret))).toBe(200);
    const [mobile] = await tollgate.json('keys', 'list', '--external-id', 'customer-42', '--tag', 'ios');
    expect(mobile).toMatchObject({
      name: 'mobile-app',
      tags: ['eu', 'ios', 'paid'],
      rateLimitId: 'kong-10-second-1000-hour',
    });
    expect((await tollgate.json('limits', 'show', 'partner')).limits).toMatchObject([
      { limitId: 'main', limit: 20, period: '1s' },
      { limitId: '3600s', limit: 10000, period: '3600s' },
    ]);
    expect(await tollgate.json('keys', 'show', 'web-shop')).toMatchObject({ rateLimitId: null });
    const look = await play(await documentedCommands('## 4. Look at the result', page));
    expect(look.match(/mobile-app/g)).toHaveLength(2);
  });
});

describe('docs/migrate-from-tyk.md', () => {
  const page = 'migrate-from-tyk.md';
  let tyk: Server;
  let sample: readonly { readonly key: string; readonly session: object }[];
  beforeAll(async () => {
    fleet = await startInProcessFleet(1);
    tollgate = new Administrator(url());
    sample = (await readFile(join(EXAMPLES, 'tyk-keys.jsonl'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const policies = JSON.parse(await readFile(join(EXAMPLES, 'tyk-policies.json'), 'utf8'));
    // The part of Tyk's gateway API that the guide uses.
    tyk = createServer((req, res) => {
      const key = /^\/tyk\/keys\/(\w+)$/.exec(req.url ?? '')?.[1];
      const body =
        req.url === '/tyk/policies'
          ? policies
          : req.url === '/tyk/keys'
            ? { keys: sample.map((one) => one.key) }
            : sample.find((one) => one.key === key)?.session;
      const isAllowed = req.headers['x-tyk-authorization'] === 'the-secret-of-tyk';
      res.writeHead(isAllowed && body !== undefined ? 200 : 403).end(JSON.stringify(body));
    }).listen(0, '127.0.0.1');
    await once(tyk, 'listening');
  });
  afterAll(async () => {
    tyk?.close();
    await fleet?.stop();
  });

  it('brings keys here with the limits of their policies or their own', async () => {
    const address = `http://127.0.0.1:${(tyk.address() as AddressInfo).port}`;
    await play(await documentedCommands('## 1. Take the keys out of Tyk', page), {
      TYK: address,
      TYK_SECRET: 'the-secret-of-tyk',
    });
    expect(await rows('tyk-keys.jsonl')).toEqual(sample);
    const made = await play(await documentedCommands('## 2. Make the plans', page));
    expect(made).toBe('tyk-5-1s-1000-86400s\ntyk-20-1s-100000-2592000s\n');
    const [dryRun = '', forGood = ''] = await documentedCommands('## 3. Import the keys', page);
    expect(JSON.parse(await play([dryRun]))).toMatchObject({ rows: 3, made: 3, rejected: [] });
    expect(await play([forGood])).toBe('row,code,field,message\n');

    const statuses = await Promise.all(sample.map(({ key }) => statusOf(url(), key)));
    expect(statuses).toEqual([200, 401, 200, 401]);
    expect(await tollgate.json('keys', 'show', 'Mobile app')).toMatchObject({
      tags: ['eu'],
      metadata: { team: 'x' },
      expiresAt: null,
    });
    expect((await tollgate.json('limits', 'show', 'Mobile app')).limits).toMatchObject([
      { limitId: 'main', limit: 20, period: '1s' },
      { limitId: 'quota', limit: 100000, period: '2592000s' },
    ]);
    expect(await tollgate.json('keys', 'show', 'Partner')).toMatchObject({
      enabled: false,
      expiresAt: '2099-01-01T00:00:00Z',
      rateLimitId: 'tyk-5-1s-1000-86400s',
    });
    expect(await tollgate.json('keys', 'show', 'key from Tyk')).toMatchObject({ rateLimitId: null });
    expect(await play(await documentedCommands('## 4. Look at the result', page))).toContain('Mobile app');
  });

  it('brings keys here of which Tyk knows the SHA-256 alone', async () => {
    const secret = 'a-key-of-tyk-that-is-hashed';
    const key = createHash('sha256').update(secret).digest('hex');
    const session = { ...sample[0]?.session, alias: 'Hashed', apply_policies: [], rate: 7, per: 1 };
    await writeFile(join(directory, 'tyk-keys.jsonl'), `${JSON.stringify({ key, session })}\n`);
    await writeFile(join(directory, 'tyk-policies.json'), '[]');
    await play(await documentedCommands('## 2. Make the plans', page));
    await play(await documentedCommands('## 3. Import the keys', page), { keys: 'sha256' });
    expect(await statusOf(url(), secret)).toBe(200);
    expect(await tollgate.json('keys', 'show', 'Hashed')).toMatchObject({ rateLimitId: 'tyk-7-1s' });
  });
});
