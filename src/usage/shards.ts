/** Number of shards that keys are spread over; the counts of a shard are written, moved and dropped together. */
export const SHARDS = 64;

/** The shard of a key, the same on every replica (FNV-1a). */
export function shardOf(keyId: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < keyId.length; index += 1) {
    hash = Math.imul(hash ^ keyId.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % SHARDS;
}
