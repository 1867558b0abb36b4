import { costWords, limitWords, patternWords, rateWords } from '../limit-words.ts';
import type { PlanTerms } from '../plan.ts';

/** One thing about a plan that differs between two versions. Undefined: that version does not have it. */
export interface PlanDifference {
  readonly what: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** What differs, in the order in which a plan is read. Empty where both say the same. */
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
    // The first cost that matches counts: their order is part of what they say.
    ...costs.map((cost, index): [string, string] => [
      `Cost ${index + 1}`,
      `${patternWords(cost)}: ${costWords(cost)}`,
    ]),
  ]);
}

/** The fields to send, so that only those are changed; a list is sent whole. */
export function changedFields(from: PlanTerms, to: PlanTerms): Partial<PlanTerms> {
  const names = ['description', 'limit', 'period', 'additionalLimits', 'costs'] as const;
  const changed = names.filter((name) => JSON.stringify(from[name]) !== JSON.stringify(to[name]));
  return Object.fromEntries(changed.map((name) => [name, to[name]]));
}
