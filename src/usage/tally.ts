import type { Clock } from '../platform/clock.ts';
import type { CompletedRequest, UsageRecorder } from './usage.ts';
import { customerName, endpointName, MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from './usage-names.ts';
import { addCounts, type Counts, noCounts, noUsage, type UsageSums } from './usage-sums.ts';

const HOUR_MS = 3_600_000;
/** Names of all keys together, about 400 bytes each. The keys themselves are as many as were created. */
const MAX_NAMES = 50_000;
/** Hours of one key: a store that is away for longer finds the rest under the last of them. */
const MAX_HOURS = 48;

/** What a tally works with. */
export interface TallyOptions {
  readonly clock: Clock;
  /** Takes out of a path or a customer's id what must not be stored: a client may put its key anywhere. */
  readonly mask: (name: string) => string;
  /** Names of all keys together; 50 000 unless told. */
  readonly maxNames?: number;
}

/**
 * What this replica has recorded and not yet written: plain numbers, added to in place. Bounded whatever clients send and however
 * long the store is away: names beyond a cap are summed under `__other__`, and the totals stay exact.
 */
export class Tally implements UsageRecorder {
  readonly #clock: Clock;
  readonly #mask: (name: string) => string;
  readonly #maxNames: number;
  /** Edited in place: this is the hot path. */
  readonly #added: Counts = noCounts();
  #keys = new Map<string, UsageSums>();
  #names = 0;

  constructor({ clock, mask, maxNames = MAX_NAMES }: TallyOptions) {
    this.#clock = clock;
    this.#mask = mask;
    this.#maxNames = maxNames;
  }

  /** Keys that have something to be written. */
  get size(): number {
    return this.#keys.size;
  }

  record(request: CompletedRequest): void {
    const added = this.#added;
    added.requests = 1;
    added.successful = request.successful ? 1 : 0;
    added.forwarded = request.forwardedMs === null ? 0 : 1;
    added.forwardedUs = microseconds(request.forwardedMs);
    const key = this.#keys.get(request.keyId) ?? this.#open(request.keyId);
    addCounts(key.totals, added);
    addCounts(key.endpoints.get(request.endpoint) ?? this.#endpoint(key, request.endpoint), added);
    addCounts(key.customers.get(request.customerId) ?? this.#customer(key, request.customerId), added);
    const hour = Math.floor(this.#clock.nowMs() / HOUR_MS);
    addCounts(key.hours.get(hour) ?? openHour(key, hour), added);
  }

  /** Hands over all that was recorded, but for the keys in `except`, which go on being added to. */
  take(except: ReadonlyMap<string, unknown>): ReadonlyMap<string, UsageSums> {
    const taken = this.#keys;
    this.#keys = new Map();
    this.#names = 0;
    for (const keyId of except.keys()) {
      const key = taken.get(keyId);
      if (key === undefined) continue;
      taken.delete(keyId);
      this.#keys.set(keyId, key);
      this.#names += key.endpoints.size + key.customers.size;
    }
    return taken;
  }

  #open(keyId: string): UsageSums {
    const key = noUsage();
    this.#keys.set(keyId, key);
    return key;
  }

  // A name that is in the list already is clean, so that only new ones are looked at.
  #endpoint(key: UsageSums, path: string): Counts {
    return this.#place(key.endpoints, endpointName(this.#mask(path)), MAX_ENDPOINTS);
  }

  #customer(key: UsageSums, id: string): Counts {
    return this.#place(key.customers, customerName(this.#mask(id)), MAX_CUSTOMERS);
  }

  #place(list: Map<string, Counts>, name: string, cap: number): Counts {
    const known = list.get(name);
    if (known !== undefined) return known;
    const named = list.size - (list.has(OTHER) ? 1 : 0);
    if (name !== OTHER && (named >= cap || this.#names >= this.#maxNames)) {
      return this.#place(list, OTHER, cap);
    }
    const counts = noCounts();
    list.set(name, counts);
    this.#names += 1;
    return counts;
  }
}

function openHour(key: UsageSums, hour: number): Counts {
  if (key.hours.size >= MAX_HOURS) {
    const last = [...key.hours.values()].at(-1);
    if (last !== undefined) return last;
  }
  const counts = noCounts();
  key.hours.set(hour, counts);
  return counts;
}

/** Whole microseconds; a duration that makes no sense counts as none. */
function microseconds(ms: number | null): number {
  return ms !== null && ms > 0 && ms < Number.MAX_SAFE_INTEGER / 1e9 ? Math.round(ms * 1000) : 0;
}
