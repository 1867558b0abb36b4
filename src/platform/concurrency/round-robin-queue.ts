/**
 * A queue that takes turns between groups: the first item of each group in the order in which the groups began to wait, then the second
 * of each, and so on. So one group with thousands of items delays the next item of another by one item only.
 */
export class RoundRobinQueue<Item> {
  /** In the order in which the groups are served next. No group is ever empty. */
  readonly #groups = new Map<string, Item[]>();
  #size = 0;

  /** Items that wait, of all groups. */
  get size(): number {
    return this.#size;
  }

  /** Items of `group` that wait. */
  sizeOf(group: string): number {
    return this.#groups.get(group)?.length ?? 0;
  }

  push(group: string, item: Item): void {
    const items = this.#groups.get(group);
    if (items === undefined) this.#groups.set(group, [item]);
    else items.push(item);
    this.#size += 1;
  }

  /** Takes the next item; undefined when none waits. */
  shift(): Item | undefined {
    for (const [group, items] of this.#groups) {
      const item = items.shift();
      this.#groups.delete(group);
      if (items.length > 0) this.#groups.set(group, items);
      if (item !== undefined) this.#size -= 1;
      return item;
    }
    return undefined;
  }

  /** Takes up to `count` items. */
  take(count: number): Item[] {
    const taken: Item[] = [];
    while (taken.length < count) {
      const item = this.shift();
      if (item === undefined) break;
      taken.push(item);
    }
    return taken;
  }
}
