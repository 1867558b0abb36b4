import type { ParsedUrlQuery } from 'node:querystring';
import { TollgateError } from '../errors.ts';
import { editDistance } from '../platform/edit-distance.ts';

/** Edits between a name and a known one beyond which it is no slip of the pen. */
const MOST_EDITS = 3;
/** Longest name that is compared or repeated, in characters. */
const LONGEST_NAME = 64;

/** Throws `invalid_parameter` for a query parameter that the endpoint does not know, with the nearest known name where one is near. */
export function rejectUnknownParameters(query: ParsedUrlQuery, known: readonly string[]): void {
  const unknown = Object.keys(query).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const nearest = nearestName(unknown, known);
  const hint = nearest === undefined ? `Known are ${known.join(', ')}.` : `Did you mean "${nearest}"?`;
  throw new TollgateError(
    'invalid_parameter',
    `The query parameter "${unknown.slice(0, LONGEST_NAME)}" is unknown. ${hint}`,
  );
}

/** The known name with the fewest edits, without regard to case, `_` and `-`; undefined when none is near. */
function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST_NAME) return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(bare(name), bare(candidate)) }))
    .filter(({ candidate, distance }) => distance <= Math.min(MOST_EDITS, candidate.length / 2))
    .toSorted((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate;
}

function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}
