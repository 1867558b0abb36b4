import { OTHER } from './usage-names.ts';
import type { Counts } from './usage-slice.ts';

/**
 * Maps each name to the name under which its counts are kept, in a list with room for `room` new names, in the order given. A known name
 * keeps its place; a name without room is summed under `__other__`, which needs no room. The history store and the reader that previews the
 * history both use this function, so that they agree.
 */
export function capNames(
  names: Iterable<string>,
  isKnown: (name: string) => boolean,
  room: number,
): Map<string, string> {
  const places = new Map<string, string>();
  let left = room;
  for (const name of names) {
    const needsRoom = name !== OTHER && !isKnown(name);
    places.set(name, needsRoom && left <= 0 ? OTHER : name);
    if (needsRoom && left > 0) left -= 1;
  }
  return places;
}

/** Most requests first, ties by name: the order of every list of the detail response. */
export function byRequests(
  [nameA, a]: readonly [string, Readonly<Counts>],
  [nameB, b]: readonly [string, Readonly<Counts>],
): number {
  if (a.requests !== b.requests) return b.requests - a.requests;
  if (nameA === nameB) return 0;
  return nameA < nameB ? -1 : 1;
}
