import { type FieldFault, PatternNotCanonical } from '../errors.ts';
import { canonicalFault, canonicalPattern, nearestCanonical } from '../paths/canonical-pattern.ts';
import type { PathPattern } from '../paths/path-pattern.ts';
import type { PathCase } from '../paths/path-readings.ts';
import type { PlanTerms } from './plan.ts';

type Lists = Partial<Pick<PlanTerms, 'additionalLimits' | 'costs'>>;

/**
 * The terms with their patterns in canonical form, in which they are stored. Throws `PatternNotCanonical` for patterns that match no
 * canonical path.
 */
export function canonicalTerms<Terms extends Lists>(terms: Terms, pathCase: PathCase): Terms {
  const faults: FieldFault[] = [];
  function canonical<Pattern extends PathPattern>(pattern: Pattern, field: string): Pattern {
    const path = canonicalPattern(pattern.path, pathCase);
    const fault = canonicalFault(path);
    if (fault !== undefined) faults.push({ field: `${field}.path`, message: messageOf(fault, path) });
    return path === pattern.path ? pattern : { ...pattern, path };
  }
  const additionalLimits = terms.additionalLimits?.map((limit, index) => {
    if (limit.match === undefined) return limit;
    const field = `additionalLimits[${index}].match`;
    return { ...limit, match: limit.match.map((each, at) => canonical(each, `${field}[${at}]`)) };
  });
  const costs = terms.costs?.map((cost, index) => canonical(cost, `costs[${index}]`));
  if (faults.length > 0) throw new PatternNotCanonical(faults);
  return { ...terms, ...(additionalLimits && { additionalLimits }), ...(costs && { costs }) };
}

function messageOf(fault: string, path: string): string {
  const nearest = nearestCanonical(path);
  return canonicalFault(nearest) === undefined ? `${fault}: write "${nearest}"` : fault;
}
