import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { requireProgram } from '../support/debian-package.ts';
import { documentedCommands } from '../support/documented-commands.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { putCommandInto } from './support/command-on-path.ts';

const run = promisify(execFile);
const GUIDE = 'configuration-as-code.md';

let fleet: Fleet;
let directory: string;
beforeAll(async () => {
  await requireProgram('jq', 'jq');
  directory = await mkdtemp(join(tmpdir(), 'tollgate-config-recipes-'));
  await putCommandInto(directory);
  fleet = await startInProcessFleet(1);
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

it('the recipes of docs/configuration-as-code.md work as written', async () => {
  const url = fleet.replicas[0]?.url ?? '';
  const env = {
    PATH: `${directory}:${process.env.PATH}`,
    HOME: directory,
    ...{ TOLLGATE_URL: url, TOLLGATE_TOKEN: ROOT_TOKEN, COMMIT: '1234' },
  };
  const play = async (block = '') => (await run('sh', ['-ec', block], { env, cwd: directory })).stdout;
  const file = join(directory, 'gateway.yaml');
  await play('tollgate keys create "Mobile app" --external-id customer-42 --plan default');

  const [takeOver] = await documentedCommands('## Begin with what there is', GUIDE);
  await play(takeOver);
  const exported = parse(await readFile(file, 'utf8'));
  expect(exported.keys).toEqual([{ externalId: 'customer-42', name: 'Mobile app', rateLimitId: 'default' }]);
  expect((await fleet.admin.call('GET', '/rate-limit/default')).body).toMatchObject({
    managedBy: 'gateway-repository',
  });

  const [makeToken, review, apply] = await documentedCommands('## Apply it in a pipeline', GUIDE);
  await play(makeToken);
  const changed = { plans: exported.plans, keys: [{ externalId: 'customer-43', name: 'Web app' }] };
  await writeFile(file, stringify(changed));
  expect(await play(review)).toBe('create key customer-43\ndelete key customer-42\n');
  const applied = await play(apply);
  expect(applied).toMatch(/customer-43 key_[0-9A-Z]{26}\n$/);
  expect(applied).not.toMatch(/tg_[0-9A-Za-z]{36}/);
  await play(review);
  await play(`rm new-secrets.ndjson\n${apply}`);

  await play('tollgate keys update "Web app" --name "Web shop"');
  await writeFile(file, stringify({ ...changed, keys: [{ externalId: 'customer-43', name: 'Web site' }] }));
  expect(await play(review)).toBe('update key customer-43 changed_elsewhere\n');
});
