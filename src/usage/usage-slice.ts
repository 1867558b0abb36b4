/**
 * Requests of one kind, summed. All whole numbers, so that sums are exact in any order. Edited in place: these are
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
  /** Bytes of request bodies and of response bodies. */
  bytesIn: number;
  bytesOut: number;
  /** Of the requests, those that were rejected by a limit. */
  rateLimited: number;
  /** Of the requests, those with a status 4xx, 429 included, and those with 5xx. */
  clientErrors: number;
  serverErrors: number;
  /** Windows in shadow mode that would have rejected a request. */
  shadowLimited: number;
  /** What the allowed ones cost together. Kept by hour only, while events of usage are heard. */
  units: number;
}

/**
 * The usage of one key on one day of UTC under one plan, most often of one hour. The hours, the endpoints and the customers each sum to the
 * same totals. Maps, because clients choose the names; they keep the order in which the names came.
 */
export interface UsageSlice {
  readonly keyId: string;
  /** Days since 1970-01-01. */
  readonly day: number;
  /** The plan that applied; empty when none did. */
  readonly planId: string;
  /** By hours since 1970-01-01T00:00Z. */
  readonly hours: Map<number, Counts>;
  readonly endpoints: Map<string, Counts>;
  readonly customers: Map<string, Counts>;
  /** When the key was last used. Seconds since 1970. */
  lastUsedAtS: number;
}

/**
 * Requests of a key that have the same hour, plan, endpoint and customer. Between two writes most keys have only such requests, for which a
 * slice with its lists would cost several times as much.
 */
export interface UniformUsage {
  readonly keyId: string;
  readonly hour: number;
  readonly planId: string;
  readonly endpoint: string;
  readonly customerId: string;
  readonly counts: Counts;
  lastUsedAtS: number;
}

/** What was recorded of one key. */
export type RecordedUsage = UsageSlice | UniformUsage;

export const HOURS_A_DAY = 24;

export function noCounts(): Counts {
  return {
    requests: 0,
    successful: 0,
    forwarded: 0,
    forwardedUs: 0,
    bytesIn: 0,
    bytesOut: 0,
    rateLimited: 0,
    clientErrors: 0,
    serverErrors: 0,
    shadowLimited: 0,
    units: 0,
  };
}

export function emptySlice(keyId: string, day: number, planId: string): UsageSlice {
  return {
    keyId,
    day,
    planId,
    hours: new Map(),
    endpoints: new Map(),
    customers: new Map(),
    lastUsedAtS: 0,
  };
}

export function addCounts(to: Counts, added: Readonly<Counts>): void {
  to.requests += added.requests;
  to.successful += added.successful;
  to.forwarded += added.forwarded;
  to.forwardedUs += added.forwardedUs;
  to.bytesIn += added.bytesIn;
  to.bytesOut += added.bytesOut;
  to.rateLimited += added.rateLimited;
  to.clientErrors += added.clientErrors;
  to.serverErrors += added.serverErrors;
  to.shadowLimited += added.shadowLimited;
  to.units += added.units;
}

/** Adds under a name, without a cap. */
export function addUnder<Name>(list: Map<Name, Counts>, name: Name, added: Readonly<Counts>): void {
  let counts = list.get(name);
  if (counts === undefined) {
    counts = noCounts();
    list.set(name, counts);
  }
  addCounts(counts, added);
}

/** The hour of a slice; undefined if it has several. */
export function onlyHourOf({ hours }: UsageSlice): number | undefined {
  if (hours.size !== 1) return undefined;
  const [hour] = hours.keys();
  return hour;
}

/** The sum over all requests. */
export function totalsOf(recorded: RecordedUsage): Counts {
  const totals = noCounts();
  const parts = 'counts' in recorded ? [recorded.counts] : recorded.hours.values();
  for (const counts of parts) addCounts(totals, counts);
  return totals;
}
