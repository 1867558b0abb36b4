import { MAX_CUSTOMERS, MAX_ENDPOINTS } from './cap-names.ts';
import {
  addCapped,
  addUnder,
  emptySlice,
  HOURS_A_DAY,
  onlyHourOf,
  type RecordedUsage,
  type UniformUsage,
  type UsageSlice,
} from './usage-slice.ts';

/** How many names the lists of a slice may have. */
export interface NameCaps {
  readonly endpoints: number;
  readonly customers: number;
}

/** The bounds of the counts that wait in a store; no traffic can exceed them. */
export const STORED_CAPS: NameCaps = { endpoints: MAX_ENDPOINTS, customers: MAX_CUSTOMERS };
/** For counts that are about to be moved: the history applies the caps. */
export const NO_CAPS: NameCaps = {
  endpoints: Number.POSITIVE_INFINITY,
  customers: Number.POSITIVE_INFINITY,
};

/**
 * How many hours of a key's day have slices of their own. Only in these is known what each customer used in which hour; counts of further
 * hours, as in a long outage of a store, share a slice, so that its memory is bounded.
 */
export const HOURS_APART = 4;

/** Slices that are added up, of a key, day and plan each, with the names in the order in which they first came. */
export class SliceTable {
  readonly caps: NameCaps;
  readonly #hoursApart: number;
  readonly #slices = new Map<string, UsageSlice>();
  /** Hours with slices of their own, by key, day and plan. */
  readonly #apart = new Map<string, number>();

  constructor(caps: NameCaps, hoursApart = HOURS_APART) {
    this.caps = caps;
    this.#hoursApart = hoursApart;
  }

  get slices(): readonly UsageSlice[] {
    return [...this.#slices.values()];
  }

  add(added: RecordedUsage): void {
    const day = 'counts' in added ? Math.floor(added.hour / HOURS_A_DAY) : added.day;
    const hour = 'counts' in added ? added.hour : onlyHourOf(added);
    const slice = this.sliceOf(`${added.keyId}\t${day}\t${added.planId}`, hour, added.lastUsedAtS);
    if ('counts' in added) {
      this.addUniform(slice, added);
      return;
    }
    for (const [hour, counts] of added.hours) addUnder(slice.hours, hour, counts);
    for (const [name, counts] of added.endpoints)
      addCapped(slice.endpoints, name, counts, this.caps.endpoints);
    for (const [name, counts] of added.customers)
      addCapped(slice.customers, name, counts, this.caps.customers);
  }

  /** Adds counts of one hour, endpoint and customer to a slice of the table. */
  addUniform(
    slice: UsageSlice,
    { hour, endpoint, customerId, counts }: Pick<UniformUsage, 'hour' | 'endpoint' | 'customerId' | 'counts'>,
  ): void {
    addUnder(slice.hours, hour, counts);
    addCapped(slice.endpoints, endpoint, counts, this.caps.endpoints);
    addCapped(slice.customers, customerId, counts, this.caps.customers);
  }

  /**
   * The slice of an id, which is the key, the day and the plan separated by tabs, for counts of one hour or, if that is undefined, of
   * several. Callers add to the slice within the caps.
   */
  sliceOf(id: string, hour: number | undefined, lastUsedAtS: number): UsageSlice {
    const name = hour === undefined || !this.#isApart(id, hour) ? id : `${id}\t${hour}`;
    let slice = this.#slices.get(name);
    if (slice === undefined) {
      const [keyId = '', day, planId = ''] = id.split('\t');
      slice = emptySlice(keyId, Number(day), planId);
      this.#slices.set(name, slice);
    }
    slice.lastUsedAtS = Math.max(slice.lastUsedAtS, lastUsedAtS);
    return slice;
  }

  #isApart(id: string, hour: number): boolean {
    if (this.#slices.has(`${id}\t${hour}`)) return true;
    const hours = this.#apart.get(id) ?? 0;
    if (hours >= this.#hoursApart) return false;
    this.#apart.set(id, hours + 1);
    return true;
  }
}
