import { LRUCache } from 'lru-cache';

/**
 * A cache of at most `maxEntries` entries, which evicts the least recently used one. Its memory grows with its entries: with `max`,
 * lru-cache allocates the memory for all entries at once, 2.8 MB for 100 000. `dispose` is called with each entry that leaves the cache and
 * the reason: `set` if it was replaced.
 */
export class BoundedCache<V extends NonNullable<unknown>> extends LRUCache<string, V> {
  constructor(maxEntries: number, dispose?: LRUCache.Disposer<string, V>) {
    super({ maxSize: maxEntries, sizeCalculation: () => 1, ...(dispose && { dispose }) });
  }
}
