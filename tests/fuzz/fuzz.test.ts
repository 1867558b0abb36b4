import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

/** Longer than the sequences take on a machine that has much else to do. Seconds. */
const MOST_SECONDS = 280;
const SEED = 1;
const SEQUENCES = 300;

it(
  'every promise of the proxied leg holds in 300 random sequences',
  async () => {
    const run = join(import.meta.dirname, 'run.ts');
    // A process of its own: what would end the gateway must not end the tests, and what is left behind is counted in it.
    const fuzz = promisify(execFile)(process.execPath, [run, `${MOST_SECONDS}`, `${SEED}`, `${SEQUENCES}`]);
    const { stdout } = await fuzz.catch((failed: { stdout: string; stderr: string }) => failed);
    expect(stdout).toContain(`${SEQUENCES} sequences: all promises held`);
  },
  (MOST_SECONDS + 60) * 1000,
);
