import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { COMPILED_DIRECTORY } from '../support/gateway.ts';

const RUN = join(import.meta.dirname, 'run.ts');
/** Longer than the sequences take on a machine that has much else to do. Seconds. */
const MOST_SECONDS = 280;
/** The seeds of the first sequences of three runs beside each other: a sequence mostly waits. */
const FIRST_SEEDS = [1, 41, 81];
const SEQUENCES = 40;
const env = { ...process.env, NODE_COMPILE_CACHE: COMPILED_DIRECTORY };

it(
  'every promise of the proxied leg holds in 120 random sequences',
  async () => {
    // Processes of their own: what would end the gateway must not end the tests, and what is left behind is counted in them.
    const runs = FIRST_SEEDS.map(async (seed) => {
      const args = [RUN, `${MOST_SECONDS}`, `${seed}`, `${SEQUENCES}`];
      const fuzz = promisify(execFile)(process.execPath, args, { env });
      const { stdout } = await fuzz.catch((failed: { stdout: string; stderr: string }) => failed);
      return stdout;
    });
    for (const written of await Promise.all(runs)) {
      expect(written).toContain(`${SEQUENCES} sequences: all promises held`);
    }
  },
  (MOST_SECONDS + 60) * 1000,
);
