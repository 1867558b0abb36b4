import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Area } from './areas.ts';
import { EQUAL_MUTANTS } from './equal-mutants.ts';
import { type Mutant, mutantsOf } from './mutants.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** A mutant of an area. */
export interface Candidate {
  readonly file: string;
  readonly mutant: Mutant;
  /** Tells the same change of the same text in several lines of the file apart. */
  readonly nth: number;
}

/** All mutants of an area, by file and line. */
export function candidatesOf({ files }: Area): readonly Candidate[] {
  return globSync([...files], { cwd: ROOT })
    .toSorted()
    .flatMap((file) => {
      const seen = new Map<string, number>();
      return mutantsOf(file, readFileSync(join(ROOT, file), 'utf8')).map((mutant) => {
        const change = `${mutant.before.trim()}\n${mutant.after.trim()}`;
        const nth = seen.get(change) ?? 0;
        seen.set(change, nth + 1);
        return { file, mutant, nth };
      });
    });
}

/** Up to `count`, at equal distances over all files and lines. Another seed begins elsewhere. */
export function sampleOf(
  candidates: readonly Candidate[],
  { count, seed }: { readonly count: number; readonly seed: number },
): readonly Candidate[] {
  if (candidates.length <= count) return candidates;
  const step = candidates.length / count;
  const start = (seed * GOLDEN) % 1;
  return Array.from({ length: count }, (_, n) => candidates[Math.floor((n + start) * step)]).filter(
    (candidate) => candidate !== undefined,
  );
}

/** Spreads the starts of successive seeds evenly. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

export function isEqual({ file, mutant }: Candidate): boolean {
  return EQUAL_MUTANTS.some(
    (equal) =>
      equal.file === file && equal.before === mutant.before.trim() && equal.after === mutant.after.trim(),
  );
}
