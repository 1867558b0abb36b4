import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

// `npm run test:quick`: the tests that are nearest to what differs from main, as many as fit into a minute. Its last line says what it left out.

const ROOT = resolve(import.meta.dirname, '..');
const JEST = join(ROOT, 'node_modules/jest/bin/jest.js');
/** Of all workers together, by how long each file took the last time; the rest of the minute goes to their stores. */
const BUDGET_MS = 90_000;
const UNKNOWN_MS = 5_000;

interface Durations {
  /** Absolute path to [passed, milliseconds]. */
  readonly [path: string]: readonly [number, number];
}

const durations = rememberedDurations();
const all = globSync('tests/**/*.test.{ts,tsx}', { cwd: ROOT }).sort();
const changed = changedFiles();
const chosen = withinBudget(byNearness(changed));
let code: number | null = 0;
if (chosen.length > 0) {
  ({ status: code } = spawnSync(process.execPath, [join(ROOT, 'tests/run.ts'), ...chosen], {
    cwd: ROOT,
    stdio: 'inherit',
  }));
}
process.stdout.write(
  `${chosen.length} of ${all.length} test files for ${changed.length} changed files. ${leftOut()}\n`,
);
process.exitCode = code ?? 1;

/** The files that differ from where this branch left main, those of the last commit on main itself, and what is not committed yet. */
function changedFiles(): readonly string[] {
  const main = git('for-each-ref', '--format=%(refname)', 'refs/remotes/origin/main', 'refs/heads/main')[0];
  const [fork = 'HEAD'] = git('merge-base', 'HEAD', main ?? 'HEAD');
  const since = fork === git('rev-parse', 'HEAD')[0] ? 'HEAD~1' : fork;
  return [...git('diff', '--name-only', since), ...git('ls-files', '--others', '--exclude-standard')];
}

/** Changed tests first, then those of the folders of what changed, then those that import it; of each the quickest first. */
function byNearness(files: readonly string[]): readonly string[] {
  const folders = new Set(files.map((file) => file.split('/').slice(1, -1).join('/')));
  const near = all.filter((test) => folders.has(test.split('/').slice(1, -1).join('/')));
  return [
    ...new Set([
      ...quickestFirst(all.filter((test) => files.includes(test))),
      ...quickestFirst(near),
      ...quickestFirst(related(files)),
    ]),
  ];
}

function related(files: readonly string[]): readonly string[] {
  const code = files.filter((file) => /\.tsx?$/.test(file));
  if (code.length === 0) return [];
  const list = execFileSync(process.execPath, [JEST, '--listTests', '--findRelatedTests', ...code], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return list
    .split('\n')
    .filter(Boolean)
    .map((path) => relative(ROOT, path));
}

function quickestFirst(tests: readonly string[]): readonly string[] {
  return tests.toSorted((one, other) => lastDuration(one) - lastDuration(other));
}

function withinBudget(tests: readonly string[]): readonly string[] {
  let left = BUDGET_MS;
  return tests.filter((test) => {
    left -= lastDuration(test);
    return left >= 0;
  });
}

/** Milliseconds, from what Jest remembers of this checkout. */
function lastDuration(test: string): number {
  return durations[join(ROOT, test)]?.[1] ?? UNKNOWN_MS;
}

function rememberedDurations(): Durations {
  const [file] = globSync('node_modules/.cache/jest/perf-cache-*', { cwd: ROOT });
  return file === undefined ? {} : JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
}

/** How many files of each folder did not run. */
function leftOut(): string {
  const counts = new Map<string, number>();
  for (const test of all.filter((file) => !chosen.includes(file))) {
    const folder = test.split('/')[1] ?? '';
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return `Left out, until npm test: ${[...counts].map(([folder, count]) => `${folder} ${count}`).join(', ')}.`;
}

function git(...words: readonly string[]): readonly string[] {
  return execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean);
}
