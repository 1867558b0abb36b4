import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { findPythonEnvironment } from '../support/python-environment.ts';

/** From PyPI. It stays until it is changed here. */
const SCHEMATHESIS = 'schemathesis==4.32.5';
const SECONDS = '10';
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];

let fleet: Fleet;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-schemathesis-'));
  fleet = await startFleet(1);
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

it('schemathesis finds no server error, and no response that is not documented', async () => {
  const found = await findPythonEnvironment(SCHEMATHESIS);
  if ('leftOutBecause' in found) {
    process.stderr.write(`The check with schemathesis was left out: ${found.leftOutBecause}.\n`);
    return;
  }
  const { url = '' } = fleet.replicas[0] ?? {};
  const options = [
    ['--header', `Authorization: Bearer ${ROOT_TOKEN}`],
    ['--checks', CHECKS.join(',')],
    // On another port; the same operation of the management interface is not left out.
    ['--exclude-path', '/verify'],
    // Only where people can sign in.
    ['--exclude-path-regex', '^/tollgate/session'],
    ['--phases', 'examples,fuzzing,stateful'],
    ['--mode', 'all'],
    ['--max-examples', '10'],
    ['--max-time', SECONDS],
    ['--no-color'],
  ].flat();
  const report = await promisify(execFile)(
    join(found.bin, 'schemathesis'),
    ['run', `${url}/tollgate/openapi.json`, ...options],
    { cwd: directory, maxBuffer: 64 * 1024 * 1024 },
  ).catch((error: { readonly stdout?: string; readonly stderr?: string }) => {
    // Its own report says more than that it ended with another code than 0.
    throw new Error(`${error.stdout ?? ''}${error.stderr ?? ''}`, { cause: error });
  });
  expect(report.stdout).toMatch(/\d+ generated, \d+ passed/);
  expect(fleet.replicas[0]?.output()).not.toContain('internal_error');
});
