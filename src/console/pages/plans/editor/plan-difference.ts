import { costWords, limitWords, patternWords, rateWords } from '../limit-words.ts';
import type { PlanTerms } from '../plan-types.ts';

/** A part of a plan that differs between two versions. Undefined if a version does not have it. */
export interface PlanDifference {
  readonly what: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** The differences, in the order in which a plan is shown. Empty if both versions are the same. */
export function planDifferences(from: PlanTerms, to: PlanTerms): readonly PlanDifference[] {
  const [before, after] = [linesOf(from), linesOf(to)];
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((what) => ({ what, from: before.get(what), to: after.get(what) }))
    .filter((line) => line.from !== line.to);
}

function linesOf(terms: PlanTerms): ReadonlyMap<string, string> {
  const { description, additionalLimits, costs } = terms;
  return new Map([
    ['Limit', rateWords(terms)],
    ['Description', description === '' ? 'none' : description],
    ...additionalLimits.map((limit): [string, string] => [`Limit “${limit.limitId}”`, limitWords(limit)]),
    // The first matching cost applies: the order of costs matters.
    ...costs.map((cost, index): [string, string] => [
      `Cost ${index + 1}`,
      `${patternWords(cost)}: ${costWords(cost)}`,
    ]),
  ]);
}
