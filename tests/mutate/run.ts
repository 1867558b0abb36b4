import { globSync, readFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { positiveNumber, scriptCommand, wholeNumber } from '../support/script-command.ts';
import { AREAS, type Area } from './areas.ts';
import { EQUAL_MUTANTS } from './equal-mutants.ts';
import { type Mutant, mutantsOf } from './mutants.ts';
import { MutatedCopy } from './mutated-copy.ts';

const ROOT = resolve(import.meta.dirname, '../..');
/** A run with a mutant may take so much longer than one without. */
const TIMES_USUAL = 3;
const LEAST_TIMEOUT_MS = 30_000;

const script = scriptCommand(
  'mutate',
  'Changes single lines of a copy of the source, one at a time, and runs the tests of that area. Ends with 1 where they notice too few of the changes.',
)
  .argument('[area]', `one of: ${AREAS.map(({ name }) => name).join(', ')}; all by default`, areaNamed)
  .option('--most <count>', 'mutants of each file, spread over its lines', wholeNumber(1), 10)
  .option('--file <part>', 'only files whose path contains this', '')
  .option(
    '--skip <count>',
    'the first mutants of each file that are left out, to see others',
    wholeNumber(),
    0,
  )
  .option('--minutes <count>', 'begin no mutant after so many minutes', positiveNumber(), 300)
  .option('--list', 'only list the mutants')
  .parse();
const { most, file: part, skip, minutes, list } = script.opts();
const chosen: Area | undefined = script.processedArgs[0];
const deadline = performance.now() + minutes * 60_000;

interface Tried {
  readonly file: string;
  readonly mutant: Mutant;
}

/** What became of the mutants of a file. */
interface Count {
  killed: number;
  survived: number;
  equal: number;
}

const isGood = list ? listAll() : await run();
process.exit(isGood ? 0 : 1);

function listAll(): boolean {
  for (const { file, mutant } of areas().flatMap(triedIn)) report(describe(file, mutant));
  return true;
}

async function run(): Promise<boolean> {
  const copy = new MutatedCopy(ROOT, tmpdir());
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      copy.remove();
      process.exit(128 + constants.signals[signal]);
    });
  try {
    const missed: string[] = [];
    for (const area of areas()) if (!(await isAimMet(area, copy))) missed.push(area.name);
    report(missed.length === 0 ? 'every aim is met' : `aims missed: ${missed.join(', ')}`);
    return missed.length === 0;
  } finally {
    copy.remove();
  }
}

function areas(): readonly Area[] {
  return chosen === undefined ? AREAS : [chosen];
}

async function isAimMet(area: Area, copy: MutatedCopy): Promise<boolean> {
  const tried = triedIn(area);
  if (tried.length === 0) return true;
  const startedAt = performance.now();
  if ((await copy.test(area.tests, deadline)) !== 'passed') {
    report(`${area.name}: the tests fail without any mutant`);
    return false;
  }
  const timeoutMs = Math.max(LEAST_TIMEOUT_MS, TIMES_USUAL * (performance.now() - startedAt));
  const counts = new Map<string, Count>();
  for (const { file, mutant } of tried) {
    if (performance.now() > deadline) {
      report(`${area.name}: the time is over, and some of its mutants were not tried`);
      break;
    }
    const count = counts.get(file) ?? { killed: 0, survived: 0, equal: 0 };
    counts.set(file, count);
    count[await fateOf({ file, mutant }, { area, copy, timeoutMs })] += 1;
  }
  return judge(area, counts);
}

async function fateOf(
  { file, mutant }: Tried,
  { area, copy, timeoutMs }: { readonly area: Area; readonly copy: MutatedCopy; readonly timeoutMs: number },
): Promise<keyof Count> {
  if (isEqual(file, mutant)) return 'equal';
  const result = await copy.withMutant(file, mutant, () => copy.test(area.tests, timeoutMs));
  if (result !== 'passed') return 'killed';
  report(`survived: ${describe(file, mutant)}`);
  return 'survived';
}

function judge({ name, aim }: Area, counts: ReadonlyMap<string, Count>): boolean {
  let [killed, all] = [0, 0];
  for (const [file, count] of counts) {
    report(`${file}: ${count.killed} killed, ${count.survived} survived, ${count.equal} equal`);
    killed += count.killed;
    all += count.killed + count.survived;
  }
  report(`${name}: ${killed} of ${all} killed, the aim is ${aim * 100} %`);
  return killed >= aim * all;
}

function triedIn({ files }: Area): readonly Tried[] {
  return globSync([...files], { cwd: ROOT })
    .filter((file) => file.includes(part))
    .toSorted()
    .flatMap((file) => {
      const mutants = mutantsOf(file, readFileSync(join(ROOT, file), 'utf8')).slice(skip);
      const step = Math.max(1, mutants.length / most);
      const spread = Array.from(
        { length: Math.min(most, mutants.length) },
        (_, n) => mutants[Math.floor(n * step)],
      );
      return spread.flatMap((mutant) => (mutant === undefined ? [] : [{ file, mutant }]));
    });
}

function isEqual(file: string, { before, after }: Mutant): boolean {
  return EQUAL_MUTANTS.some(
    (equal) => equal.file === file && equal.before === before.trim() && equal.after === after.trim(),
  );
}

function describe(file: string, { line, before, after }: Mutant): string {
  return `${file}:${line}\n  - ${before.trim()}\n  + ${after.trim()}`;
}

function areaNamed(text: string): Area {
  const area = AREAS.find(({ name }) => name === text);
  if (area !== undefined) return area;
  throw new InvalidArgumentError('It is no area.');
}

function report(text: string): void {
  process.stdout.write(`${text}\n`);
}
