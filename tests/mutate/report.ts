import type { Area } from './areas.ts';
import { candidatesOf, isEqual } from './candidates.ts';
import type { KeptResults } from './kept-results.ts';

/** What is known of the mutants of an area. */
export interface Counts {
  readonly area: Area;
  readonly mutants: number;
  readonly killed: number;
  /** Of those killed. */
  readonly hung: number;
  readonly equal: number;
  readonly survived: number;
  readonly isAimMet: boolean;
}

/** Counts the results that were kept of the mutants that there are today. */
export function countsOf(area: Area, results: KeptResults): Counts {
  const candidates = candidatesOf(area);
  const fates = candidates
    .filter((candidate) => !isEqual(candidate))
    .map((candidate) => results.get(area.name, candidate)?.fate);
  const count = (fate: string) => fates.filter((each) => each === fate).length;
  const [hung, survived] = [count('hung'), count('survived')];
  const killed = count('killed') + hung;
  return {
    area,
    mutants: candidates.length,
    killed,
    hung,
    equal: candidates.length - fates.length,
    survived,
    isAimMet: killed >= area.aim * (killed + survived),
  };
}

/** A page of the docs. Areas of which nothing was tried keep their rows of the page as it was before. */
export function reportOf(counts: readonly Counts[], pageBefore: string): string {
  const rows = counts.map(({ area, mutants, killed, hung, equal, survived }) => {
    const rowBefore = pageBefore.split('\n').find((line) => line.startsWith(`| ${area.name} |`));
    if (killed + survived === 0 && rowBefore !== undefined) return rowBefore;
    const share = killed + survived === 0 ? '' : `${((100 * killed) / (killed + survived)).toFixed(1)} %`;
    const cells = [
      area.name,
      mutants,
      killed + survived,
      killed,
      hung,
      equal,
      survived,
      share,
      `${area.aim * 100} %`,
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return `# Mutations

For those who change what these areas do: how many single-line changes of the source the tests noticed. Written by \`npm run mutate -- --publish\`;
[CONTRIBUTING.md](../../CONTRIBUTING.md) has how to run it.

| area | mutants | tried | killed | of them hung | equal | survived | share killed | aim |
|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}

Where fewer were tried than there are, they are a sample at equal distances over all files and lines. A survivor that
got a test since counts as killed, so another sample may find a lower share. An area of which a run has tried nothing keeps its row. Equal mutants do
the same as the source, and \`tests/mutate/equal-mutants.ts\` says why; they are not tried. Hung: a test waited in vain, or a loop never ended.
`;
}
