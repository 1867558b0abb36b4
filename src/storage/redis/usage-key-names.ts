/** Sets of marks. More than one, so that on a cluster they lie on different servers. */
export const MARK_SETS = 16;

/** The live counts of a key. */
export function liveUsageKey(keyId: string): string {
  return `tg:{${keyId}}:usage:live`;
}

/** The batch of a key that waits. */
export function usageBatchKey(keyId: string): string {
  return `tg:{${keyId}}:usage:batch`;
}

/** The last write of each writer to a key. */
export function usageWritesKey(keyId: string): string {
  return `tg:{${keyId}}:usage:writes`;
}

/** One of the sets of marks; `set` is 0 … `MARK_SETS` − 1. It does not lie in the slot of the keys that are marked. */
export function usageMarksKey(set: number): string {
  return `tg:usage:marks:${set}`;
}

/** The set in which a key is marked: the same on every replica (FNV-1a). */
export function markSetOf(keyId: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < keyId.length; index += 1) {
    hash = Math.imul(hash ^ keyId.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % MARK_SETS;
}
