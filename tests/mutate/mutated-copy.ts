import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Mutant } from './mutants.ts';

/** How a run of the tests ended. A run that takes too long has noticed the mutant as well. */
export type TestResult = 'passed' | 'failed' | 'timeout';

/** A copy of the working tree, in which files are mutated one at a time: the tree itself is never changed. */
export class MutatedCopy {
  readonly #folder: string;
  #running: ChildProcess | undefined;

  constructor(root: string, parent: string) {
    this.#folder = mkdtempSync(join(parent, 'tollgate-mutate-'));
    const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
    });
    for (const file of listed.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))) {
      mkdirSync(dirname(join(this.#folder, file)), { recursive: true });
      cpSync(join(root, file), join(this.#folder, file));
    }
    symlinkSync(join(root, 'node_modules'), join(this.#folder, 'node_modules'));
  }

  /** Removes the copy, and ends the tests that run in it. */
  remove(): void {
    this.#running?.kill('SIGTERM');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Runs work with the mutant in place. */
  async withMutant<Result>(file: string, mutant: Mutant, work: () => Promise<Result>): Promise<Result> {
    const path = join(this.#folder, file);
    const original = readFileSync(path, 'utf8');
    const lines = original.split('\n');
    lines[mutant.line - 1] = mutant.after;
    writeFileSync(path, lines.join('\n'));
    try {
      return await work();
    } finally {
      writeFileSync(path, original);
    }
  }

  /** Runs these tests up to the first failure. `npm test` leaves nothing running when it is stopped. */
  async test(tests: readonly string[], timeoutMs: number): Promise<TestResult> {
    const child = spawn(process.execPath, ['tests/run.ts', '--bail', '--silent', '-w', '1', ...tests], {
      cwd: this.#folder,
      stdio: 'ignore',
    });
    this.#running = child;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill('SIGTERM');
    }, timeoutMs);
    const [code] = await once(child, 'exit');
    clearTimeout(timer);
    this.#running = undefined;
    if (isLate) return 'timeout';
    return code === 0 ? 'passed' : 'failed';
  }
}
