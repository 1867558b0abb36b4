import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
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
import { CopyStores } from './copy-stores.ts';
import type { Mutant } from './mutants.ts';
import type { Outcome } from './run-tests.ts';

/** How a run of the tests ended: `waited` is a test that waited in vain, or a run that took too long. */
export interface TestRun {
  readonly result: 'passed' | 'failed' | 'waited';
  /** The file and the name of the test that failed. */
  readonly file?: string;
  readonly test?: string;
  readonly message?: string;
  /** By file. */
  readonly durationsMs: Readonly<Record<string, number>>;
}

export interface Bounds {
  /** Of each test that has no bound of its own. */
  readonly testMs: number;
  readonly runMs: number;
}

/** What Git does not have: the packages, and the console that some tests request. */
const BUILT = ['node_modules', 'dist'];

/** A copy of the working tree, in which files are mutated one at a time, with stores: the tree itself is never changed. */
export class MutatedCopy {
  /** Of the names and contents of all files without a mutant. */
  readonly digest: string;
  readonly #folder: string;
  readonly #stores = new CopyStores();
  #running: ChildProcess | undefined;
  #isRemoved = false;

  constructor(root: string, parent: string) {
    this.#folder = mkdtempSync(join(parent, 'tollgate-mutate-'));
    const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: root,
      encoding: 'utf8',
    });
    const hash = createHash('sha256');
    for (const file of listed.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))) {
      mkdirSync(dirname(join(this.#folder, file)), { recursive: true });
      cpSync(join(root, file), join(this.#folder, file));
      hash
        .update(`${file}\0`)
        .update(readFileSync(join(this.#folder, file)))
        .update('\0');
    }
    this.digest = hash.digest('base64url');
    for (const built of BUILT.filter((name) => existsSync(join(root, name))))
      symlinkSync(join(root, built), join(this.#folder, built));
  }

  /** Removes the copy, and ends what runs in it: a run of the tests then rejects. */
  async remove(): Promise<void> {
    this.#isRemoved = true;
    if (this.#running !== undefined) killGroup(this.#running);
    await this.#stores.stop();
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

  /** Runs these test files one after the other, up to the first failure. Leaves nothing running. */
  async test(files: readonly string[], { testMs, runMs }: Bounds): Promise<TestRun> {
    const outcomeFile = join(this.#folder, 'outcome.json');
    rmSync(outcomeFile, { force: true });
    const temporary = mkdtempSync(join(this.#folder, 'temporary-'));
    const child = spawn(
      process.execPath,
      ['tests/mutate/run-tests.ts', outcomeFile, String(testMs), ...files],
      {
        cwd: this.#folder,
        // A group that what it starts belongs to.
        detached: true,
        stdio: 'ignore',
        env: {
          ...process.env,
          ...(await this.#stores.emptied()),
          JEST_WORKER_ID: '1',
          NODE_COMPILE_CACHE: join(this.#folder, 'compiled'),
          TMPDIR: temporary,
        },
      },
    );
    this.#running = child;
    const isLate = await endsLate(child, runMs);
    killGroup(child);
    this.#running = undefined;
    // What it did until it was stopped says nothing.
    if (this.#isRemoved) throw new Error('The run was stopped');
    rmSync(temporary, { recursive: true, force: true });
    const { failed, durationsMs } = readOutcome(outcomeFile);
    if (isLate) return { result: 'waited', durationsMs };
    if (failed === undefined) return { result: existsSync(outcomeFile) ? 'passed' : 'failed', durationsMs };
    const { file, test, message } = failed;
    return {
      result: /Exceeded timeout of/i.test(message) ? 'waited' : 'failed',
      file,
      test,
      message,
      durationsMs,
    };
  }
}

/** Whether it had to be stopped. */
async function endsLate(child: ChildProcess, runMs: number): Promise<boolean> {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup(child);
  }, runMs);
  await once(child, 'exit');
  clearTimeout(timer);
  return isLate;
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}

/** Empty where the process ended before its tests. */
function readOutcome(file: string): Outcome {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { durationsMs: {} };
}
