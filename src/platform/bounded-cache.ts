import { LRUCache } from 'lru-cache';

/**
 * A cache of at most `maxEntries` entries, which forgets the least recently used one first. Its memory grows with its entries: where
 * lru-cache is given `max`, it allocates that of all entries at once, 2.8 MB for 100 000. `dispose` is called with each entry that leaves, and
 * why: `set` where it was replaced.
 */
export class BoundedCache<V extends NonNullable<unknown>> extends LRUCache<string, V> {
  constructor(maxEntries: number, dispose?: LRUCache.Disposer<string, V>) {
    super({ maxSize: maxEntries, sizeCalculation: () => 1, ...(dispose && { dispose }) });
  }
}
