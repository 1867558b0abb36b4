/** Most endpoints and most customers of one key that are counted by name. */
export const MAX_ENDPOINTS = 500;
export const MAX_CUSTOMERS = 1000;

/** The name under which names beyond the caps are summed. A client that sends this name is summed here too. */
export const OTHER = '__other__';

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
