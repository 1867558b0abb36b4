import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';

const run = promisify(execFile);
const MODULE = join(import.meta.dirname, '../../src/platform/process/collect-garbage.ts');
/** Prints whether an object that nothing refers to is still there. */
const PROGRAM = `
  const { collectGarbage } = await import(${JSON.stringify(MODULE)});
  const garbage = new WeakRef({});
  await new Promise(setImmediate);
  await collectGarbage();
  console.log(garbage.deref() === undefined ? 'collected' : 'kept');
`;

async function runWith(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [...args, '--input-type=module', '--eval', PROGRAM]);
  return stdout.trim();
}

describe('collecting garbage', () => {
  it('takes what nothing refers to, and the process goes on', async () => {
    expect(await runWith()).toBe('collected');
  });

  it('does nothing in a process that may not use the inspector', async () => {
    expect(await runWith('--permission', '--allow-fs-read=*')).toBe('kept');
  });
});
