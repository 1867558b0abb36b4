import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';

const run = promisify(execFile);

describe('the recipes of docs/api.md about secrets', () => {
  let fleet: Fleet;
  let directory: string;
  let url: string;
  beforeAll(async () => {
    await Promise.all([requireProgram('curl', 'curl'), requireProgram('jq', 'jq')]);
    directory = await mkdtemp(join(tmpdir(), 'tollgate-recipes-'));
    fleet = await startInProcessFleet(1);
    url = fleet.replicas[0]?.url ?? '';
  });
  afterAll(async () => {
    await fleet?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  async function play(block = '', settings: Readonly<Record<string, string>> = {}): Promise<string> {
    const env = { ...process.env, GATEWAY: url, ROOT_TOKEN, ...settings };
    return (await run('sh', ['-ec', block], { env, cwd: directory })).stdout;
  }

  it('rotate a key without downtime', async () => {
    const { id, secret } = await fleet.admin.makeKey('rotated');
    const [rotate, end] = await documentedCommands('### Rotate without downtime');
    await play(rotate, { API_KEY_ID: id });
    const file = await readFile(join(directory, 'customer-42.env'), 'utf8');
    expect(file).toMatch(/^API_KEY_ID=key_\w+\nAPI_KEY=tg_\w+\n$/);
    const next = /^API_KEY=(\w+)$/m.exec(file)?.[1] ?? '';
    expect([await statusOf(url, secret), await statusOf(url, next)]).toEqual([200, 200]);
    expect(await play(end, { API_KEY_ID: id })).toMatch(/^(never|\d{4}-\S+Z)\nnull\n$/);
    expect([await statusOf(url, secret), await statusOf(url, next)]).toEqual([401, 200]);
  });

  it('rotate a key although a first attempt is rejected for a moment', async () => {
    const [rotate] = await documentedCommands('### Rotate without downtime');
    const responses = ['{"error": "busy"}', '{"consumerApiKeyId": "key_1", "secret": "tg_next"}'];
    const gateway = createServer((_req, res) => {
      res.writeHead(responses.length === 2 ? 503 : 200).end(responses.shift());
    });
    const port = await listenOnLoopback(gateway);
    await play(rotate, { GATEWAY: `http://127.0.0.1:${port}`, API_KEY_ID: 'key_1' });
    gateway.close();
    const file = await readFile(join(directory, 'customer-42.env'), 'utf8');
    expect(file).toBe('API_KEY_ID=key_1\nAPI_KEY=tg_next\n');
  });

  it('end with an error and write no key where the rotation is rejected', async () => {
    const { id } = await fleet.admin.makeKey('rotated twice');
    const [rotate] = await documentedCommands('### Rotate without downtime');
    await fleet.admin.call('POST', `/consumer-api-key/${id}/rotate`, { graceSeconds: 60 });
    await expect(play(rotate?.replace('february', 'march'), { API_KEY_ID: id })).rejects.toThrow(
      'has two secrets already',
    );
    expect(await readFile(join(directory, 'customer-42.env'), 'utf8')).toBe('');
  });

  it('find the owner of a leaked key, and disable it', async () => {
    const { secret } = await fleet.admin.makeKey('leaky app');
    await writeFile(join(directory, 'leaked.txt'), `${secret}\n`);
    const [find] = await documentedCommands('### Find the owner of a leaked key');
    expect(await play(find)).toBe('leaky app\t-\tcurrent\nfalse\n');
    expect(await statusOf(url, secret)).toBe(401);
  });

  it('move keys here by their hashes, and again', async () => {
    const secrets = ['first-secret-of-elsewhere', 'second-secret-of-elsewhere'];
    const lines = secrets.map(
      (secret, index) => `app ${index},${createHash('sha256').update(secret).digest('hex')}\n`,
    );
    await writeFile(join(directory, 'hashes.csv'), lines.join(''));
    const [move] = await documentedCommands('### Move here from another gateway by hash');
    expect(await play(move)).toBe('2 made, 0 were there\n');
    expect(await play(move)).toBe('0 made, 2 were there\n');
    for (const secret of secrets) expect(await statusOf(url, secret)).toBe(200);
  });
});
