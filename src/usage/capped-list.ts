import { OTHER } from './usage-names.ts';
import { addUnder, type Counts } from './usage-sums.ts';

/** The named part of a list of counts, as pairs. */
export type NamedCounts = readonly (readonly [name: string, counts: Readonly<Counts>])[];

/**
 * Decides which names new to a list get a place of their own: the first `room` of them, most requests first, ties by name. The
 * others are summed under `__other__`, which needs no room. The store that keeps the history and the reader that previews
 * it both ask here, so that they agree.
 */
export function placeNames(names: NamedCounts, room: number): Map<string, Counts> {
  const placed = new Map<string, Counts>();
  let left = room;
  for (const [name, counts] of names.toSorted(byRequests)) {
    const hasPlace = name === OTHER || left > 0;
    if (hasPlace && name !== OTHER) left -= 1;
    addUnder(placed, hasPlace ? name : OTHER, counts);
  }
  return placed;
}

/** Most requests first, ties by name: the order of every list of the detail answer. */
export function byRequests(
  [nameA, a]: readonly [string, Readonly<Counts>],
  [nameB, b]: readonly [string, Readonly<Counts>],
): number {
  if (a.requests !== b.requests) return b.requests - a.requests;
  if (nameA === nameB) return 0;
  return nameA < nameB ? -1 : 1;
}
