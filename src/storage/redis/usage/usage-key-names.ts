/** The names of a shard's keys in Redis. They have one hash tag, so that they lie in one slot; the shards lie in different slots. */

/** The live counts of a data set: a list, see `recordUsage`. */
export function liveUsageKeyName(shard: number, source: string): string {
  return `tg:{usage-${shard}}:${source}:live`;
}

/** The waiting batch of a data set. */
export function usageBatchKeyName(shard: number, source: string): string {
  return `tg:{usage-${shard}}:${source}:batch`;
}

/** The last write of each writer. */
export function usageWritersKeyName(shard: number): string {
  return `tg:{usage-${shard}}:writers`;
}

/** The data sets that have counts: the present one, and earlier ones whose counts are still to be moved. */
export function usageSourcesKeyName(shard: number): string {
  return `tg:{usage-${shard}}:sources`;
}

/** Exists while a flusher has the shard, and for a moment after. */
export function usageLeaseKeyName(shard: number): string {
  return `tg:{usage-${shard}}:lease`;
}
