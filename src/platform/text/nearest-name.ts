/** Edits between a name and a known one beyond which it is no slip of the pen. */
const MOST_EDITS = 3;
/** Shortest name that is taken for the beginning of another, in characters. */
const SHORTEST_BEGINNING = 3;
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

/** The known name with the fewest edits, or the only one that begins with it, without regard to case, `_` and `-`; undefined when none is near. */
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

/** How many letters must be added, removed, replaced or swapped with their neighbour to get from one word to the other. */
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
