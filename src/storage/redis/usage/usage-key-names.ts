/** The names of what Redis holds of a shard. All have one hash tag, so that they lie in one slot; the shards lie in different ones. */

/** The live counts of a data set: a list, see `recordUsage`. */
export function liveUsageKey(shard: number, source: string): string {
  return `tg:{usage-${shard}}:${source}:live`;
}

/** The batch of a data set that waits. */
export function usageBatchKey(shard: number, source: string): string {
  return `tg:{usage-${shard}}:${source}:batch`;
}

/** The last write of each writer. */
export function usageWritersKey(shard: number): string {
  return `tg:{usage-${shard}}:writers`;
}

/** The data sets that have counts: the present one, and those before it whose counts are still to be moved. */
export function usageSourcesKey(shard: number): string {
  return `tg:{usage-${shard}}:sources`;
}

/** There while a flusher has the shard, or had it a moment ago. */
export function usageLeaseKey(shard: number): string {
  return `tg:{usage-${shard}}:lease`;
}
