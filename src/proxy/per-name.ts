const MOST_NAMES = 1000;

/**
 * A function of a field's name that is worked out once for each: those who send fields have few names. What is kept is bounded, begins anew
 * when somebody has sent many, and is not the part of a head that the name came in as, which would keep all of that head.
 */
export function perName<T>(make: (name: string) => T): (name: string) => T {
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
