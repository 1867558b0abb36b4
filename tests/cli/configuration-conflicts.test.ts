import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { runOnTerminal } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();
let count = 0;
/** Of a plan that a file has set to 10, and that was changed to 11 elsewhere. */
let plan: string;
let apply: readonly string[];
/** A file that sets the plan to 20. */
let file: string;

beforeEach(async () => {
  count += 1;
  plan = `drifted-${count}`;
  file = join(stage.directory, `${plan}.yaml`);
  await writeFile(file, yamlOf(10));
  apply = ['config', 'apply', file, '--owner', plan];
  await stage.tollgate.text(...apply, '--yes');
  await stage.tollgate.text('plans', 'update', plan, '--limit', '11');
  await writeFile(file, yamlOf(20));
});

function yamlOf(limit: number): string {
  return `plans: [{rateLimitId: ${plan}, limit: ${limit}, period: hour}]\n`;
}

it('tollgate config diff says how many changes are in conflict', async () => {
  const { code, stderr } = await stage.tollgate.run(['config', 'diff', file, '--owner', plan]);
  expect([code, stderr]).toEqual([
    2,
    '0 to create, 1 to change, 0 to delete, 0 unchanged. In conflict: 1.\n',
  ]);
});

describe('a dry run of tollgate config apply', () => {
  it('fails on a record that was changed elsewhere, as the command itself does', async () => {
    for (const option of ['--dry-run', '--yes']) {
      const { code, stderr } = await stage.tollgate.run([...apply, option]);
      expect([option, code]).toEqual([option, 5]);
      expect(stderr).toContain(`\n  plan ${plan}: changed elsewhere\n`);
    }
    expect((await stage.tollgate.run([...apply, '--force', '--dry-run'])).code).toBe(0);
  });

  it('fails on another --expect-digest, as the command itself does', async () => {
    const { stdout } = await stage.tollgate.run(['config', 'diff', file, '--owner', plan, '-o', 'json']);
    const { digest } = JSON.parse(stdout);
    const dryRun = (expected: string) =>
      stage.tollgate.run([...apply, '--force', '--dry-run', '--expect-digest', expected]);
    expect((await dryRun('0'.repeat(64))).code).toBe(5);
    expect((await dryRun(digest)).code).toBe(0);
  });

  it('fails on an ambiguous key also with --force', async () => {
    for (const name of ['one', 'two'])
      await stage.tollgate.text('keys', 'create', name, '--external-id', plan);
    await writeFile(file, `keys: [{externalId: ${plan}, name: one}]\n`);
    for (const option of ['--dry-run', '--yes']) {
      const { code, stderr } = await stage.tollgate.run([...apply, '--force', option]);
      expect([option, code]).toEqual([option, 5]);
      expect(stderr).toContain(`\n  key ${plan}: ambiguous\n`);
    }
  });
});

describe('the question of tollgate config apply', () => {
  const asked = (...options: readonly string[]) =>
    runOnTerminal([...apply, ...options], { environment: stage.tollgate.environment, input: 'n\n' });

  it('names what was changed elsewhere, and would be overwritten or deleted', async () => {
    const overwritten = await asked('--force');
    expect(overwritten.stdout).toContain(`  update plan ${plan}  changed elsewhere  limit 11 → 20\r\n`);
    await writeFile(file, 'plans: []\n');
    const deleted = await asked('--force', '--prune');
    expect(deleted.stdout).toContain(`  delete plan ${plan}  changed elsewhere\r\n`);
  });
});
