/** One thing that was measured now and then. */
export interface Series {
  readonly name: string;
  readonly unit: 'MB' | 'count' | 'bytes a row';
  readonly values: readonly number[];
}

/** What is called flat: above the second quarter's by less than a part of it and an amount besides. */
const TOLERANCES: Readonly<Record<Series['unit'], { readonly part: number; readonly amount: number }>> = {
  // A heap is let grow a little before it is collected.
  MB: { part: 0.1, amount: 8 },
  count: { part: 0.1, amount: 10 },
  // Postgres uses the room of dead rows again once a fifth of a table is dead.
  'bytes a row': { part: 0.3, amount: 100 },
};

/** What a series shows of a growth that does not end. */
export interface Flatness {
  readonly early: number;
  readonly late: number;
  readonly isFlat: boolean;
}

/**
 * Compares the least of the second quarter with the least of the last one: caches are full by then, and what is garbage, or open for a moment,
 * is not in the least.
 */
export function flatnessOf({ unit, values }: Series): Flatness {
  const quarter = Math.floor(values.length / 4);
  if (quarter === 0) throw new Error('there are fewer than four measurements');
  const early = Math.min(...values.slice(quarter, 2 * quarter));
  const late = Math.min(...values.slice(-quarter));
  const { part, amount } = TOLERANCES[unit];
  return { early, late, isFlat: late <= early * (1 + part) + amount };
}
