import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { requireProgram } from '../support/debian-package.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';

const run = promisify(execFile);

describe('the recipe of docs/api.md that provisions a customer', () => {
  let fleet: Fleet;
  let directory: string;
  beforeAll(async () => {
    await Promise.all([requireProgram('curl', 'curl'), requireProgram('jq', 'jq')]);
    directory = await mkdtemp(join(tmpdir(), 'tollgate-provision-'));
    fleet = await startInProcessFleet(1);
  });
  afterAll(async () => {
    await fleet?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it('makes one key, however often it runs, and shows and changes it', async () => {
    const url = fleet.replicas[0]?.url ?? '';
    const env = { ...process.env, GATEWAY: url, ROOT_TOKEN };
    const play = async (block = '') => (await run('sh', ['-ec', block], { env, cwd: directory })).stdout;
    const [provision, review] = await documentedCommands('### Provision a customer');

    expect(await play(provision)).toBe('gold\n');
    const file = join(directory, 'customer-42.env');
    const handedOver = await readFile(file, 'utf8');
    const [, id, secret] = /^API_KEY_ID=(key_\w+)\nAPI_KEY=(tg_\w+)\n$/.exec(handedOver) ?? [];
    expect((await stat(file)).mode & 0o077).toBe(0);
    await play(provision);
    expect(await readFile(file, 'utf8')).toBe(handedOver);

    const networks = ['203.0.113.0/24', '2001:db8::/32'];
    const [shown = '', changed = '', ...rest] = (await play(review)).trim().split('\n');
    expect(JSON.parse(shown)).toEqual({
      name: 'ACME, production',
      tags: ['eu', 'paid'],
      rateLimitId: 'gold',
      allowedIps: networks,
    });
    expect(JSON.parse(changed)).toEqual([...networks, '198.51.100.7']);
    expect(rest).toEqual([]);

    const headers = { authorization: `Bearer ${secret}` };
    const elsewhere = await fetch(`${url}/v1/orders`, { headers });
    expect(await elsewhere.json()).toMatchObject({ code: 'address_not_allowed' });
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { allowedIps: ['127.0.0.1'] });
    const response = await fetch(`${url}/v1/orders`, { headers });
    expect([response.status, response.headers.get('x-ratelimit-limit')]).toEqual([200, '1000']);
  });
});
