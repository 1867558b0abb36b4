import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { requireProgram } from '../support/debian-package.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { GuideReader } from './support/play-guide.ts';

const PAGE = 'protect-an-api.md';
const COMMAND = { 'npx tollgate': 'tollgate' };

let fleet: Fleet;
let directory: string;

beforeAll(async () => {
  await requireProgram('curl', 'curl');
  fleet = await startInProcessFleet(1);
  directory = await mkdtemp(join(tmpdir(), 'tollgate-guide-'));
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

it('the page for a first key leads from the login to a request that the backend gets', async () => {
  const reader = new GuideReader(directory, {});
  await reader.install();
  const address = { 'http://localhost:8080': fleet.replicas[0]?.url ?? '' };
  const login = await reader.play(
    { page: PAGE, heading: '## 2. Log in' },
    { settings: { TOLLGATE_TOKEN: ROOT_TOKEN }, inPlaceOf: { ...COMMAND, ...address } },
  );
  expect(login.stdout + login.stderr).toContain('Context default is');
  // The secret is known only after the first commands: the request is sent without a key then.
  const first = await reader.play(
    { page: PAGE, heading: '## 3. Make a plan and a key' },
    { inPlaceOf: { ...COMMAND, ...address } },
  );
  expect(first.stdout).toContain('"invalid_api_key"');
  const secret = /\btg_\w+/.exec(first.stdout)?.[0] ?? '';
  const request = await reader.play(
    { page: PAGE, heading: '## 3. Make a plan and a key' },
    { inPlaceOf: { ...address, 'npx tollgate': 'true', 'tg_…': secret } },
  );
  expect(request.stdout).toBe('ok');
});
