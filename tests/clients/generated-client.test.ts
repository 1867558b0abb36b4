import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SCOPES } from '../../src/permissions/scopes.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { findPythonEnvironment } from '../support/python-environment.ts';
import { withClientStage } from './support/stage.ts';

/** From PyPI. It stays until it is changed here. */
const GENERATOR = 'openapi-python-client==0.29.1';

const run = promisify(execFile);
const stage = withClientStage();
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-generated-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

it('a client that is generated in Python manages plans and keys, with a type for each response', async () => {
  const found = await findPythonEnvironment(GENERATOR);
  if ('leftOutBecause' in found) {
    process.stderr.write(`The generated client was left out: ${found.leftOutBecause}.\n`);
    return;
  }
  const made = join(directory, 'client');
  const document = resolve('docs/openapi.json');
  const generated = await run(
    join(found.bin, 'openapi-python-client'),
    ['generate', '--path', document, '--output-path', made],
    // Where it finds ruff, it formats what it has made.
    { env: { ...process.env, PATH: `${found.bin}:${process.env.PATH}` } },
  );
  // It names the operations and schemas that it leaves out.
  expect(generated.stdout + generated.stderr).not.toMatch(/warning|error/i);
  const { stdout } = await run(
    join(found.bin, 'python'),
    [resolve(import.meta.dirname, 'support/generated-client.py')],
    { env: { PYTHONPATH: made, TOLLGATE_URL: stage.gateway.url, TOLLGATE_TOKEN: ROOT_TOKEN } },
  );
  const printed = JSON.parse(stdout);
  expect(printed).toEqual({
    again: ['plan_exists', expect.stringContaining('exists already')],
    costs: [3, 'response'],
    listed: [['Ada', ['eu', 'paid']]],
    total: 1,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/),
    limit: 5,
    secrets: [expect.stringMatching(/^tg_/), expect.stringMatching(/^tg_/)],
    audited: 'key.rotate',
    scopes: SCOPES.length,
  });
  for (const secret of printed.secrets)
    expect((await fetch(stage.gateway.url, { headers: { authorization: `Bearer ${secret}` } })).status).toBe(
      200,
    );
});
