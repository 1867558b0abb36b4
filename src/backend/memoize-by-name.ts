const MOST_NAMES = 1000;

/**
 * Memoizes a function of a header name: clients and backends use few names. The cache is bounded and is cleared when it is full. Its
 * keys are copies of the names, because a slice of a head would keep the whole head in memory.
 */
export function memoizeByName<T>(make: (name: string) => T): (name: string) => T {
  const known = new Map<string, T>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const copy = Buffer.from(name, 'latin1').toString('latin1');
    const made = make(copy);
    if (known.size === MOST_NAMES) known.clear();
    known.set(copy, made);
    return made;
  };
}
