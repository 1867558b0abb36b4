import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { AREAS } from './areas.ts';
import { EQUAL_MUTANTS } from './equal-mutants.ts';
import { KeptResults } from './kept-results.ts';
import { mutantsOf } from './mutants.ts';
import { reportOf } from './report.ts';

const ROOT = resolve(import.meta.dirname, '../..');

function changed(path: string, text: string): readonly string[] {
  return mutantsOf(path, text).map(({ line, after }) => `${line}: ${after.trim()}`);
}

describe('the mutants of a source file', () => {
  it('change conditions, operators, truth values and effects, each in one line', () => {
    const text = `import { more } from 'somewhere';
const isSmall = (n: number) => n < 5 && !isOdd(n);
if (isSmall(1)) stop();
log.info('text' + more);
let open = true;
const either = open ? 1 : 2;
multiple(
  lines,
);
`;
    expect(changed('a.ts', text)).toEqual([
      '2: const isSmall = (n: number) => n <= 5 && !isOdd(n);',
      '2: const isSmall = (n: number) => n < 5 || !isOdd(n);',
      '2: const isSmall = (n: number) => n < 5 && isOdd(n);',
      '3: if (false) stop();',
      '3: if (true) stop();',
      '3: if (isSmall(1)) ;',
      '5: let open = false;',
      '6: const either = true ? 1 : 2;',
      '6: const either = false ? 1 : 2;',
    ]);
  });

  it('change scripts of Redis in the same way, and no comment', () => {
    const text = `--[[
  a and b
]]
if a == b then return 0 end -- not c
redis.call('DEL', KEYS[1])
`;
    expect(changed('a.lua', text)).toEqual([
      '4: if false then return 0 end -- not c',
      '4: if true then return 0 end -- not c',
      '4: if a ~= b then return 0 end -- not c',
      '5: ',
    ]);
  });
});

describe('the areas that are mutated', () => {
  it.each(AREAS)('name files and tests that there are: $name', ({ files, tests }) => {
    for (const pattern of files)
      expect([pattern, globSync(pattern, { cwd: ROOT })]).not.toEqual([pattern, []]);
    const known = globSync('tests/**/*.test.ts', { cwd: ROOT });
    for (const path of tests) expect([path, known.some((file) => file.includes(path))]).toEqual([path, true]);
  });

  it('name every script of Redis', () => {
    const named = AREAS.flatMap(({ files }) => globSync([...files], { cwd: ROOT }));
    expect(named).toEqual(expect.arrayContaining(globSync('src/**/*.lua', { cwd: ROOT })));
  });

  it('have only equal mutants that there are', () => {
    for (const { file, before, after } of EQUAL_MUTANTS) {
      expect(existsSync(join(ROOT, file))).toBe(true);
      const mutants = mutantsOf(file, readFileSync(join(ROOT, file), 'utf8'));
      expect(mutants.map((mutant) => [mutant.before.trim(), mutant.after.trim()])).toContainEqual([
        before,
        after,
      ]);
    }
  });
});

it('a run that goes on knows which tests passed in the same tree, and how long they took', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-results-'));
  try {
    const path = join(directory, 'results.jsonl');
    const stopped = new KeptResults(path, { isResumed: false });
    stopped.addUsual('area', 'tree', { first: 1 });
    stopped.addUsual('area', 'tree', { second: 2 });
    const resumed = new KeptResults(path, { isResumed: true });
    expect(resumed.usual('area', 'tree')).toEqual({ first: 1, second: 2 });
    expect([resumed.usual('area', 'other tree'), resumed.usual('other area', 'tree')]).toEqual([{}, {}]);
    expect(new KeptResults(path, { isResumed: false }).usual('area', 'tree')).toEqual({});
  } finally {
    await rm(directory, { recursive: true });
  }
});

it('the report keeps the row of an area of which nothing was tried', () => {
  const [tried, other] = AREAS;
  if (tried === undefined || other === undefined) throw new Error('there are no areas');
  const none = { mutants: 3, killed: 0, hung: 0, equal: 0, survived: 0, isAimMet: true };
  const before = `| ${tried.name} | before |\n| ${other.name} | kept |\n`;
  const page = reportOf(
    [
      { ...none, area: tried, killed: 2, survived: 1 },
      { ...none, area: other },
    ],
    before,
  );
  expect(page).toContain(`| ${tried.name} | 3 | 3 | 2 | 0 | 0 | 1 | 66.7 % |`);
  expect(page).toContain(`| ${other.name} | kept |`);
  expect(page).not.toContain('before |');
});
