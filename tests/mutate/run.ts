import { readFileSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { positiveNumber, scriptCommand, wholeNumber } from '../support/script-command.ts';
import { AREAS, type Area } from './areas.ts';
import { type Candidate, candidatesOf, isEqual, sampleOf } from './candidates.ts';
import { KeptResults } from './kept-results.ts';
import { MutatedCopy } from './mutated-copy.ts';
import { MutationRun } from './mutation-run.ts';
import { countsOf, reportOf } from './report.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const RESULTS = join(ROOT, 'node_modules/.cache/mutations.jsonl');
const REPORT = join(ROOT, 'docs/notes/mutations.md');

const script = scriptCommand(
  'mutate',
  'Changes single lines of copies of the source, one at a time, and runs the tests of that area. Ends with 1 where they notice too few of the changes.',
)
  .argument('[areas...]', `of: ${AREAS.map(({ name }) => name).join(', ')}; all by default`, areasNamed, [])
  .option(
    '--sample <count>',
    'mutants of each area, spread over its files; always all of scripts',
    wholeNumber(1),
  )
  .option('--seed <number>', 'chooses another sample', wholeNumber(), 0)
  .option('--file <part>', 'only files whose path contains this', '')
  .option('--resume', 'go on: try again only what survived')
  .option('--survivors', 'go on, but try only what survived')
  .option('--workers <count>', 'mutants tried at the same time', wholeNumber(1), 1)
  .option(
    '--minutes <count>',
    'begin no mutant after this number of minutes',
    positiveNumber(),
    Number.POSITIVE_INFINITY,
  )
  .option('--publish', 'write docs/notes/mutations.md')
  .option('--list', 'only list the mutants')
  .parse();
const { sample, seed, file: part, resume, survivors, workers, minutes, publish, list } = script.opts();
const named: readonly Area[] = script.processedArgs[0];
const areas = named.length === 0 ? AREAS : named;

if (list) for (const candidate of areas.flatMap(chosenOf)) report(describe(candidate));
else process.exitCode = (await run()) ? 0 : 1;

async function run(): Promise<boolean> {
  const results = new KeptResults(RESULTS, { isResumed: resume === true || survivors === true });
  const toTry = (area: Area) =>
    survivors === true
      ? candidatesOf(area).filter((one) => results.get(area.name, one)?.fate === 'survived' && !isEqual(one))
      : chosenOf(area);
  const copies = Array.from({ length: workers }, () => new MutatedCopy(ROOT, tmpdir()));
  const removeAll = () => Promise.all(copies.map((copy) => copy.remove()));
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => void removeAll().then(() => process.exit(128 + constants.signals[signal])));
  const mutations = new MutationRun({
    copies,
    results,
    deadline: performance.now() + minutes * 60_000,
    report: (candidate, text) => report(`${text}: ${describe(candidate)}`),
  });
  try {
    for (const area of areas) {
      report(`${area.name}: ${await mutations.run(area, toTry(area))}`);
    }
  } finally {
    await removeAll();
  }
  const counts = AREAS.map((area) => countsOf(area, results));
  const page = reportOf(counts, readFileSync(REPORT, 'utf8'));
  report(page);
  if (publish) writeFileSync(REPORT, page);
  return counts.filter(({ area }) => areas.includes(area)).every(({ isAimMet }) => isAimMet);
}

/** Where every mutant has to be killed, every mutant is tried. */
function chosenOf(area: Area): readonly Candidate[] {
  const all = candidatesOf(area).filter(({ file }) => file.includes(part));
  const isSampled = sample !== undefined && area.aim < 1;
  const sampled = isSampled ? sampleOf(all, { count: sample, seed }) : all;
  return sampled.filter((candidate) => !isEqual(candidate));
}

function describe({ file, mutant: { line, before, after } }: Candidate): string {
  return `${file}:${line}\n  - ${before.trim()}\n  + ${after.trim()}`;
}

function areasNamed(text: string, before: readonly Area[]): readonly Area[] {
  const area = AREAS.find(({ name }) => name === text);
  if (area !== undefined) return [...before, area];
  throw new InvalidArgumentError('It is no area.');
}

function report(text: string): void {
  process.stdout.write(`${text}\n`);
}
