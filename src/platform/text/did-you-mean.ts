/** The most edits between a misspelt name and the known one. */
const MOST_EDITS = 3;
/** The shortest text that is taken for the beginning of a known name, in characters. */
const SHORTEST_BEGINNING = 3;
/** The longest name that is compared or shown, in characters. */
const LONGEST_NAME = 64;

/** A hint for an unknown name: the nearest known one, or else all known names. */
export function nameHint(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? `Known are ${known.join(', ')}.` : `Did you mean "${nearest}"?`;
}

/** An unknown name, shortened to be shown: it may be of any length. */
export function shownName(name: string): string {
  return name.slice(0, LONGEST_NAME);
}

/**
 * The known name with the fewest edits, or else the only one that begins with `name`, ignoring case, `_` and `-`. Undefined if none is
 * near.
 */
function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST_NAME) return undefined;
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(bare(name), bare(candidate)) }))
    .filter(({ candidate, distance }) => distance <= Math.min(MOST_EDITS, candidate.length / 2))
    .toSorted((a, b) => a.distance - b.distance);
  if (ranked[0] !== undefined) return ranked[0].candidate;
  const longer = known.filter((candidate) => bare(candidate).startsWith(bare(name)));
  return longer.length === 1 && name.length >= SHORTEST_BEGINNING ? longer[0] : undefined;
}

function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

/** The number of letters to add, remove, replace or swap with their neighbour to turn one word into the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[column - 2] ?? Number.POSITIVE_INFINITY) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}
