import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

const run = promisify(execFile);
const root = resolve(import.meta.dirname, '../..');
const { scripts } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

/** Each with the file that it runs. */
const measuring = Object.entries(scripts).flatMap(([name, command]) => {
  const file = /^(?:bench|chaos|fuzz|soak)/.test(name) && /exec node .*?(\S+\.ts)$/.exec(command)?.[1];
  return file ? [{ name, file }] : [];
});

function end(file: string, argument: string): Promise<{ code: number; stdout: string; stderr: string }> {
  return run(process.execPath, [resolve(root, file), argument], { cwd: root }).then(
    (output) => ({ code: 0, ...output }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      stdout,
      stderr,
    }),
  );
}

describe('Scripts that measure or attack', () => {
  it('are bench, chaos and fuzz at least', () => {
    expect(measuring.map(({ name }) => name)).toEqual(expect.arrayContaining(['bench', 'chaos', 'fuzz']));
  });

  it.each(measuring)('say with --help what they take, and do nothing else: $name', async ({ name, file }) => {
    const { code, stdout, stderr } = await end(file, '--help');

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`Usage: npm run ${name} -- [options]`);
  });

  it('reject an option that does not exist in a sentence', async () => {
    const { code, stderr } = await end('tests/bench/bench.ts', '--no-such-option');

    expect({ code, stderr }).toEqual({ code: 1, stderr: "error: unknown option '--no-such-option'\n" });
  });

  it('reject a case that the bench does not have, and name those that it has', async () => {
    const { code, stderr } = await end('tests/bench/bench.ts', '--case=allowd');

    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: .*'allowd' is invalid\. There are: .*large-responses.*\.\n$/);
  });
});
