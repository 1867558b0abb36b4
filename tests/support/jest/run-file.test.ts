import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import config from '../../../jest.config.ts';
import { scratchFolder } from '../scratch-folder.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const IMPORT = `import { expect, it, jest } from '@jest/globals';\n`;

/** Leaves all that is undone after a file, and sees nothing of another file that did. */
const UNTIDY = `it('sees nothing left', () => {
  expect([process.env.LEFT, process.cwd(), Date.now() > 1]).toEqual([undefined, ${JSON.stringify(ROOT)}, true]);
  process.env.LEFT = 'yes';
  process.chdir('/');
  process.exitCode = 7;
  jest.useFakeTimers();
  jest.spyOn(Date, 'now').mockReturnValue(1);
});`;

const FILES = {
  assertion: `it('fails', () => expect({ limit: 1 }).toEqual({ limit: 2 }));\nit('passes', () => {});`,
  rejection: `it('fails', async () => {
    Promise.reject(new Error('without a handler'));
    await new Promise(setImmediate);
  });`,
  exception: `it('fails', async () => {
    setImmediate(() => { throw new Error('thrown later'); });
    await new Promise((resolve) => setTimeout(resolve, 1000));
  });`,
  loading: `it('does not run', () => {});\nthrow new Error('thrown while it loads');`,
  syntax: `it('does not run', () => { const = 1; });`,
  deadline: `it('fails', () => new Promise(() => {}), 20);`,
  exit: `it('fails', () => process.exit(0));`,
  empty: '',
  untidy: UNTIDY,
  'also-untidy': UNTIDY,
};

/** What Jest writes of a run with `--json`. */
interface Report {
  readonly numRuntimeErrorTestSuites: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

let folder: string;
let code: number | undefined;
let report: Report;

beforeAll(async () => {
  folder = await mkdtemp(join(await scratchFolder(), 'jest-'));
  for (const [name, tests] of Object.entries(FILES))
    await writeFile(join(folder, `${name}.test.ts`), IMPORT + tests);
  ({ code, report } = await runJest());
});

afterAll(() => rm(folder, { recursive: true, force: true }));

it.each<[keyof typeof FILES, string]>([
  ['assertion', '    -   "limit": 2,\n    +   "limit": 1,'],
  ['rejection', 'without a handler'],
  ['exception', 'thrown later'],
  ['deadline', "> 2 | it('fails'"],
  ['exit', 'process.exit(0) was called'],
])('a test file with a failing test (%s) says what failed, and where', (name, message) => {
  expect(messageOf(name)).toContain(message);
  expect(messageOf(name)).toContain(`${name}.test.ts:`);
  expect(outcomesOf(name)).toContain('fails failed');
});

it.each<[keyof typeof FILES, string]>([
  ['loading', 'thrown while it loads'],
  ['syntax', 'Unexpected token `=`'],
  ['empty', 'must contain at least one test'],
])('a test file that has no tests to run (%s) fails', (name, message) => {
  expect(messageOf(name)).toContain(message);
  expect(outcomesOf(name)).toEqual([]);
});

it('a failing test fails the run, and no other test', () => {
  expect(code).toBe(1);
  expect(report.numRuntimeErrorTestSuites).toBe(3);
  expect(outcomesOf('assertion')).toEqual(['fails failed', 'passes passed']);
});

it('a test file finds the variables, the folder and the clock as they were before another', () => {
  expect(outcomesOf('untidy')).toEqual(['sees nothing left passed']);
  expect(outcomesOf('also-untidy')).toEqual(['sees nothing left passed']);
});

/** Runs the files one after the other in one process. */
function runJest(): Promise<{ readonly code: number | undefined; readonly report: Report }> {
  const own = { ...config, rootDir: ROOT, roots: [folder], testMatch: ['**/*.test.ts'] };
  const { globalSetup, globalTeardown, ...rest } = own;
  const args = ['--experimental-vm-modules', join(ROOT, 'node_modules/jest/bin/jest.js'), '--json', '-i'];
  return new Promise((resolveRun) => {
    const jest = execFile(
      process.execPath,
      [...args, '--config', JSON.stringify(rest)],
      // Without colours, also where `CI` is set.
      { cwd: ROOT, env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' } },
      (_, stdout) => {
        resolveRun({ code: jest.exitCode ?? undefined, report: JSON.parse(stdout) });
      },
    );
  });
}

function messageOf(name: keyof typeof FILES): string {
  return resultOf(name).message;
}

function outcomesOf(name: keyof typeof FILES): readonly string[] {
  return resultOf(name).assertionResults.map(({ title, status }) => `${title} ${status}`);
}

function resultOf(name: keyof typeof FILES): Report['testResults'][number] {
  const result = report.testResults.find((result) => result.name.endsWith(`/${name}.test.ts`));
  if (result === undefined) throw new Error(`no result of ${name}`);
  return result;
}
