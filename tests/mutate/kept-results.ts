import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Candidate } from './candidates.ts';

/** `hung` is a kill as well: an endless loop, or a test that waits in vain for what the mutant does not do. */
type Fate = 'killed' | 'hung' | 'survived';

export interface Result {
  readonly fate: Fate;
  /** The file and the name of the test that noticed. */
  readonly file?: string | undefined;
  readonly test?: string | undefined;
}

/** How long each test file took, by its path. Milliseconds. */
export type Durations = Readonly<Record<string, number>>;

/** What became of each mutant, in a file, so that a run that was stopped can go on. */
export class KeptResults {
  readonly #path: string;
  readonly #results = new Map<string, Result>();
  readonly #usual = new Map<string, Durations>();

  constructor(path: string, { isResumed }: { readonly isResumed: boolean }) {
    this.#path = path;
    if (!isResumed) rmSync(path, { force: true });
    mkdirSync(dirname(path), { recursive: true });
    if (!existsSync(path)) return;
    for (const line of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
      const { key, usualMs, ...result } = JSON.parse(line) as Result & {
        readonly key: string;
        readonly usualMs?: Durations;
      };
      if (usualMs === undefined) this.#results.set(key, result);
      else this.#usual.set(key, { ...this.#usual.get(key), ...usualMs });
    }
  }

  /** How long test files of an area took without a mutant: those that passed in a tree with this digest. */
  usual(area: string, digest: string): Durations {
    return this.#usual.get(`${area}\n${digest}`) ?? {};
  }

  addUsual(area: string, digest: string, usualMs: Durations): void {
    const key = `${area}\n${digest}`;
    this.#usual.set(key, { ...this.#usual.get(key), ...usualMs });
    this.#append({ key, usualMs });
  }

  get(area: string, candidate: Candidate): Result | undefined {
    return this.#results.get(keyOf(area, candidate));
  }

  add(area: string, candidate: Candidate, result: Result): void {
    const key = keyOf(area, candidate);
    this.#results.set(key, result);
    this.#append({ key, ...result });
  }

  #append(line: object): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
  }
}

/** Survives an edit elsewhere in the file. */
function keyOf(area: string, { file, nth, mutant }: Candidate): string {
  return [area, file, mutant.before.trim(), mutant.after.trim(), nth].join('\n');
}
