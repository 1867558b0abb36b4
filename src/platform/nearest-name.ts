import { editDistance } from './edit-distance.ts';

/** Edits between a name and a known one beyond which it is no slip of the pen. */
const MOST_EDITS = 3;
/** Longest name that is compared or repeated, in characters. */
const LONGEST_NAME = 64;

/** What to say of an unknown name: the nearest known one where one is near, otherwise all that are known. */
export function nameHint(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? `Known are ${known.join(', ')}.` : `Did you mean "${nearest}"?`;
}

/** An unknown name as it may be repeated: it can be of any length. */
export function shownName(name: string): string {
  return name.slice(0, LONGEST_NAME);
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
