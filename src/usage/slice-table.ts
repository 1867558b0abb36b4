import { MAX_CUSTOMERS, MAX_ENDPOINTS } from './usage-names.ts';
import { addCapped, addUnder, emptySlice, type UsageSlice } from './usage-slice.ts';

/** How many names the lists of a slice may have. */
export interface NameCaps {
  readonly endpoints: number;
  readonly customers: number;
}

/** The bounds of the counts that wait in a store; no traffic can exceed them. */
export const STORED_CAPS: NameCaps = { endpoints: MAX_ENDPOINTS, customers: MAX_CUSTOMERS };
/** For what is about to be moved, where the history gives out the places. */
export const NO_CAPS: NameCaps = {
  endpoints: Number.POSITIVE_INFINITY,
  customers: Number.POSITIVE_INFINITY,
};

/** Slices that are added up: one for each key, day and plan, with the names in the order in which they first came. */
export class SliceTable {
  readonly caps: NameCaps;
  readonly #slices = new Map<string, UsageSlice>();

  constructor(caps: NameCaps) {
    this.caps = caps;
  }

  get slices(): readonly UsageSlice[] {
    return [...this.#slices.values()];
  }

  add(added: UsageSlice): void {
    const slice = this.sliceOf(added.keyId, added.day, added.planId);
    for (const [hour, counts] of added.hours) addUnder(slice.hours, hour, counts);
    for (const [name, counts] of added.endpoints)
      addCapped(slice.endpoints, name, counts, this.caps.endpoints);
    for (const [name, counts] of added.customers)
      addCapped(slice.customers, name, counts, this.caps.customers);
    slice.lastUsedAtS = Math.max(slice.lastUsedAtS, added.lastUsedAtS);
  }

  /** The slice of a key, a day and a plan, to be added to within the caps. */
  sliceOf(keyId: string, day: number, planId: string): UsageSlice {
    const id = `${keyId} ${day} ${planId}`;
    const known = this.#slices.get(id);
    if (known !== undefined) return known;
    const slice = emptySlice(keyId, day, planId);
    this.#slices.set(id, slice);
    return slice;
  }
}
