/**
 * Requests of one kind, summed. All whole numbers, so that sums are exact in whatever order they are made. Edited in place: these are
 * the numbers that the hot path adds to.
 */
export interface Counts {
  requests: number;
  /** Of the requests, those that were successful; the others failed. */
  successful: number;
  /** Of the requests, those that were forwarded. */
  forwarded: number;
  /** Microseconds that the forwarded ones took together. */
  forwardedUs: number;
}

/**
 * What is known of a key's requests: in all, and by endpoint, by customer and by hour, each of which sums to the totals.
 * Maps, because clients choose the names.
 */
export interface UsageSums {
  readonly totals: Counts;
  readonly endpoints: Map<string, Counts>;
  readonly customers: Map<string, Counts>;
  /** By hours since 1970-01-01T00:00Z. */
  readonly hours: Map<number, Counts>;
}

export function noCounts(): Counts {
  return { requests: 0, successful: 0, forwarded: 0, forwardedUs: 0 };
}

export function noUsage(): UsageSums {
  return { totals: noCounts(), endpoints: new Map(), customers: new Map(), hours: new Map() };
}

export function addCounts(to: Counts, added: Readonly<Counts>): void {
  to.requests += added.requests;
  to.successful += added.successful;
  to.forwarded += added.forwarded;
  to.forwardedUs += added.forwardedUs;
}

/** Adds under a name, whatever is there. */
export function addUnder<Name>(list: Map<Name, Counts>, name: Name, added: Readonly<Counts>): void {
  let counts = list.get(name);
  if (counts === undefined) {
    counts = noCounts();
    list.set(name, counts);
  }
  addCounts(counts, added);
}
