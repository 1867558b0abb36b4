import { RequestCosts } from '../../../../limiter/request-limits.ts';
import { canonicalFault, canonicalPattern, nearestCanonical } from '../../../../paths/canonical-pattern.ts';
import { PathMatcher } from '../../../../paths/path-matcher.ts';
import { type PathPattern, pathPatternFault } from '../../../../paths/path-pattern.ts';
import { otherReadings, type PathCase } from '../../../../paths/path-readings.ts';
import type { PlanTerms } from '../plan-types.ts';

/** What a plan does with a request. */
export interface TriedRequest {
  /** The ids of the limits that apply. */
  readonly limitIds: readonly string[];
  /** `reserved` where the backend reports the cost. */
  readonly cost: { readonly units: number; readonly isReported: boolean };
  /** How a backend may read the path besides as it is. */
  readonly otherReadings: readonly string[];
}

/** Decides with the code of the gateway. Undefined while a pattern of the plan or the path is not valid. */
export function tryRequest(
  terms: PlanTerms,
  { method, path }: { readonly method: string; readonly path: string },
  pathCase: PathCase,
): TriedRequest | undefined {
  const sent = path.replace(/[?#].*$/, '');
  if (!/^\/[\x21-\x7e]*$/.test(sent) || /%(?![0-9A-Fa-f]{2})/.test(sent)) return undefined;
  const others = otherReadings(sent, pathCase);
  try {
    const isFor = (match: readonly PathPattern[] | undefined) =>
      match === undefined || matcherOf(match, pathCase).matchAny(method, sent, others) === true;
    const limits = (terms.additionalLimits ?? []).filter(({ match }) => isFor(match));
    const rules = (terms.costs ?? []).map(({ cost, reserve = 1, ...pattern }) => ({
      pattern,
      cost:
        typeof cost === 'number' ? { units: cost, isReported: false } : { units: reserve, isReported: true },
    }));
    return {
      limitIds: ['main', ...limits.map(({ limitId }) => limitId)],
      cost: new RequestCosts(rules, pathCase).costOf(method, sent, others),
      otherReadings: others,
    };
  } catch {
    return undefined;
  }
}

function matcherOf(patterns: readonly PathPattern[], pathCase: PathCase): PathMatcher<true> {
  return new PathMatcher(
    patterns.map((pattern) => ({ pattern, value: true as const })),
    pathCase,
  );
}

/** What the gateway makes of a pattern that is not in canonical form; undefined if it is, or if it is not valid at all. */
export function canonicalHint(path: string, pathCase: PathCase): string | undefined {
  if (pathPatternFault(path) !== undefined) return undefined;
  const canonical = canonicalPattern(path, pathCase);
  if (canonicalFault(canonical) === undefined)
    return canonical === path ? undefined : `Is saved as ${canonical}`;
  const nearest = nearestCanonical(canonical);
  return canonicalFault(nearest) === undefined ? `Write ${nearest}` : 'No request can have this path';
}
