import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { type DocumentedBlock, documentedBlocks } from '../support/documented-commands.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';

const run = promisify(execFile);

/** The headings whose commands are run here, in this order: some need what others make. */
const HEADINGS = [
  '### Create a plan',
  '## Changes that know what they change',
  '## Requests that may be sent again',
  '### Create a key',
  '### List keys',
  '### Show a key',
  '### Find a key by its secret',
  '### Hand a secret over',
  '## Self-service',
  '### Rotate a key',
  '### End a rotation',
  '### Import keys',
  '### Change many keys',
  '### List and show plans',
  '### Create or replace a plan',
  '### Change a plan',
  '### Apply a plan to a key',
  '### Show the live counters of a key',
  '### Reset the live counters of a key',
  '### Give a key more room',
  '## Admin tokens',
  '### Rotate an admin token',
  '## Replicas and stores',
  '## Audit log',
  '### Verify the audit log',
  '## Declarative configuration',
  '### Change a key',
  '### Delete a key',
  '### Delete a plan',
];

/** Those that other tests run, and look at what they do. */
const ELSEWHERE = [
  '### Provision a customer',
  '### Rotate without downtime',
  '### Find the owner of a leaked key',
  '### Move here from another gateway by hash',
  '### Give support read-only access',
  '## Usage over time',
];

const EXAMPLE_KEY = 'key_01KGH3V6ZQ5T8M2N4P6R8S0T2V';

/** curl ends with 22 where the response is an error. */
const PREAMBLE = 'curl() { command curl -s --fail-with-body "$@"; }\n';

describe('docs/api.md', () => {
  let fleet: Fleet;
  let directory: string;
  let blocks: readonly DocumentedBlock[];
  let settings: Readonly<Record<string, string>>;

  beforeAll(async () => {
    await requireProgram('curl', 'curl');
    await requireProgram('jq', 'jq');
    await requireProgram('uuidgen', 'uuid-runtime');
    directory = await mkdtemp(join(tmpdir(), 'tollgate-documented-'));
    blocks = await documentedBlocks('api.md');
    fleet = await startInProcessFleet(1);
    const url = fleet.replicas[0]?.url ?? '';
    const { id, secret } = await fleet.admin.makeKey('Mobile app');
    expect(await statusOf(url, secret)).toBe(200);
    const token = { name: 'Support', scopes: ['read-only'] };
    const { body } = await fleet.admin.call('POST', '/tollgate/admin-token/create', token);
    settings = {
      ...{ GATEWAY: url, ROOT_TOKEN, KEY_ID: id, API_KEY: secret },
      ADMIN_TOKEN_ID: body.adminTokenId,
    };
  });
  afterAll(async () => {
    await fleet?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it('has no command that no test runs', () => {
    const notRun = blocks.filter(
      ({ headings, language }) =>
        language === 'sh' &&
        ![...HEADINGS, ...ELSEWHERE, '# Management interface'].includes(headings.at(-1) ?? ''),
    );
    expect(notRun).toEqual([]);
  });

  it.each(HEADINGS)('has commands that work, with responses of this form: %s', async (heading) => {
    const own = blocks.filter(({ headings }) => headings.at(-1) === heading);
    const commands = own.filter(({ language }) => language === 'sh').map(({ text }) => text);
    expect(commands.length).toBeGreaterThan(0);
    const outputs: string[] = [];
    for (const command of commands) {
      const script = command
        .replaceAll(EXAMPLE_KEY, settings.KEY_ID ?? '')
        .replaceAll('tg_…', settings.API_KEY ?? '');
      const env = { ...process.env, ...settings };
      outputs.push(
        (await run('bash', ['-euo', 'pipefail', '-c', PREAMBLE + script], { env, cwd: directory })).stdout,
      );
    }
    const [first = ''] = commands;
    const example = own[own.findIndex(({ language }) => language === 'sh') + 1];
    const isResponse =
      example?.language === 'json' && first.split('curl').length === 2 && !first.includes('| jq');
    if (isResponse) expect(differences(JSON.parse(outputs[0] ?? ''), JSON.parse(example.text))).toEqual([]);
  });
});

/** Fields whose names are data, and the one that is there only when there is more. */
const ANY_NAMES = new Set(['metadata', 'overrides', 'changes', 'fields', 'nextCursor']);

/** Where a response has other fields, or values of another type, than its example. Null, `…` and empty lists go with everything. */
function differences(actual: unknown, example: unknown, path = ''): readonly string[] {
  if (actual === null || example === null) return [];
  if (Array.isArray(actual) && Array.isArray(example)) {
    const [[one], [other]] = [actual, example];
    return one === undefined || other === undefined ? [] : differences(one, other, `${path}[]`);
  }
  if (typeof actual !== 'object' || typeof example !== 'object')
    return typeof actual === typeof example ? [] : [path];
  const [mine, shown] = [new Map(Object.entries(actual)), new Map(Object.entries(example))];
  if (shown.has('…')) return [];
  const names = [...new Set([...mine.keys(), ...shown.keys()])].filter((name) => !ANY_NAMES.has(name));
  return names.flatMap((name) =>
    mine.has(name) && shown.has(name)
      ? differences(mine.get(name), shown.get(name), `${path}.${name}`)
      : [`${path}.${name}`],
  );
}
