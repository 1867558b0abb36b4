import type { Area } from './areas.ts';
import type { Candidate } from './candidates.ts';
import type { Durations, KeptResults, Result } from './kept-results.ts';
import type { Bounds, MutatedCopy, TestRun } from './mutated-copy.ts';
import { reaches, testFiles } from './test-files.ts';

interface Options {
  readonly copies: readonly MutatedCopy[];
  readonly results: KeptResults;
  /** On the clock of `performance`. */
  readonly deadline: number;
  readonly report: (candidate: Candidate, text: string) => void;
}

const WITHOUT_MUTANT: Bounds = { testMs: 180_000, runMs: 3_600_000 };
/** Test files without a mutant after which what they took is kept. */
const FILES_AT_ONCE = 8;
const TEST_MS = 20_000;
const LEAST_RUN_MS = 60_000;
/** A run with a mutant may take so much longer than one without. */
const TIMES_USUAL = 4;
/** What waited in vain is tried again alone, with bounds that are so much longer: the machine may have been busy. */
const TIMES_ALONE = 3;

/** Tries the mutants of one area after the other. */
export class MutationRun {
  readonly #options: Options;
  /** By test file. */
  readonly #durationsMs = new Map<string, number>();
  /** The test files that have killed mutants of a source file, the last one first. */
  readonly #killers = new Map<string, readonly string[]>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Says how it ended. Keeps each result at once. */
  async run(area: Area, candidates: readonly Candidate[]): Promise<string> {
    const { copies, results, report } = this.#options;
    const left = candidates.filter(
      (candidate) => (results.get(area.name, candidate)?.fate ?? 'survived') === 'survived',
    );
    const [first] = copies;
    if (left.length === 0 || first === undefined) return 'nothing is left to try';
    const tests = testFiles(area.tests);
    const usual = await this.#usual(area, tests, first);
    if (typeof usual === 'string') return usual;
    for (const [file, ms] of Object.entries(usual)) this.#durationsMs.set(file, ms);
    const usualMs = Object.values(usual).reduce((sum, ms) => sum + ms, 0);
    const bounds = { testMs: TEST_MS, runMs: Math.max(LEAST_RUN_MS, TIMES_USUAL * usualMs) };
    const keep = (candidate: Candidate, result: Result): void => {
      results.add(area.name, candidate, result);
      if (result.fate !== 'killed') report(candidate, result.fate);
    };
    const waiting = left.values();
    const waited: Candidate[] = [];
    const work = async (copy: MutatedCopy): Promise<void> => {
      for (const candidate of waiting) {
        if (performance.now() > this.#options.deadline) return;
        const run = await this.#try(candidate, { copy, tests, bounds });
        if (run.result === 'waited') waited.push(candidate);
        else keep(candidate, resultOf(run));
      }
    };
    await Promise.all(copies.map(work));
    const alone = { testMs: TIMES_ALONE * bounds.testMs, runMs: TIMES_ALONE * bounds.runMs };
    for (const candidate of waited) {
      if (performance.now() > this.#options.deadline) break;
      keep(candidate, resultOf(await this.#try(candidate, { copy: first, tests, bounds: alone })));
    }
    return performance.now() > this.#options.deadline ? 'the time is over' : 'done';
  }

  /** How long each test file takes without a mutant, or which one fails. A tree is tested once, and a few files at a time. */
  async #usual(area: Area, tests: readonly string[], copy: MutatedCopy): Promise<Durations | string> {
    const { results } = this.#options;
    const left = tests.filter((test) => results.usual(area.name, copy.digest)[test] === undefined);
    for (let start = 0; start < left.length; start += FILES_AT_ONCE) {
      const files = left.slice(start, start + FILES_AT_ONCE);
      const { result, file, test, message, durationsMs } = await copy.test(files, WITHOUT_MUTANT);
      if (result !== 'passed') return `without any mutant, ${file} fails: ${test}: ${message}`;
      results.addUsual(area.name, copy.digest, durationsMs);
    }
    return results.usual(area.name, copy.digest);
  }

  async #try(
    { file, mutant }: Candidate,
    {
      copy,
      tests,
      bounds,
    }: { readonly copy: MutatedCopy; readonly tests: readonly string[]; readonly bounds: Bounds },
  ): Promise<TestRun> {
    const order = this.#orderFor(file, tests);
    if (order.length === 0) return { result: 'passed', durationsMs: {} };
    const run = await copy.withMutant(file, mutant, () => copy.test(order, bounds));
    if (run.file !== undefined) {
      const others = (this.#killers.get(file) ?? []).filter((killer) => killer !== run.file);
      this.#killers.set(file, [run.file, ...others]);
    }
    return run;
  }

  /** Those that can run the file: first what killed its other mutants, then the quickest. */
  #orderFor(file: string, tests: readonly string[]): readonly string[] {
    const able = tests.filter((test) => reaches(test, file));
    const killers = (this.#killers.get(file) ?? []).filter((killer) => able.includes(killer));
    const others = able
      .filter((test) => !killers.includes(test))
      .toSorted((one, other) => this.#durationOf(one) - this.#durationOf(other));
    return [...killers, ...others];
  }

  #durationOf(test: string): number {
    return this.#durationsMs.get(test) ?? 0;
  }
}

function resultOf({ result, file, test }: TestRun): Result {
  if (result === 'passed') return { fate: 'survived' };
  return { fate: result === 'failed' ? 'killed' : 'hung', file, test };
}
