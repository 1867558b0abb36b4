import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from './cap-names.ts';
import {
  addUnder,
  type Counts,
  emptySlice,
  HOURS_A_DAY,
  onlyHourOf,
  type RecordedUsage,
  type UniformUsage,
  type UsageSlice,
} from './usage-slice.ts';

/** How many names the slices of a key, day and plan may have together, `__other__` aside. */
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

/** The slices of a key, day and plan, and how many names they have together, each counted once. */
interface SlicesOfDay {
  readonly slices: UsageSlice[];
  /** Hours with slices of their own. */
  hoursApart: number;
  endpoints: number;
  customers: number;
}

/** A slice of a table. */
export interface TableSlice {
  readonly slice: UsageSlice;
  readonly ofDay: SlicesOfDay;
}

/**
 * Slices that are added up, with the names in the order in which they first came. The caps hold for all slices of a key, day and plan
 * together: the first names keep their places, in each of the slices, and the others are summed under `__other__`.
 */
export class SliceTable {
  readonly #caps: NameCaps;
  readonly #hoursApart: number;
  readonly #slices = new Map<string, TableSlice>();
  /** By key, day and plan. */
  readonly #days = new Map<string, SlicesOfDay>();

  constructor(caps: NameCaps, hoursApart = HOURS_APART) {
    this.#caps = caps;
    this.#hoursApart = hoursApart;
  }

  get slices(): readonly UsageSlice[] {
    return [...this.#slices.values()].map(({ slice }) => slice);
  }

  add(added: RecordedUsage): void {
    const day = 'counts' in added ? Math.floor(added.hour / HOURS_A_DAY) : added.day;
    const hour = 'counts' in added ? added.hour : onlyHourOf(added);
    const to = this.sliceOf(`${added.keyId}\t${day}\t${added.planId}`, hour, added.lastUsedAtS);
    if ('counts' in added) {
      this.addUniform(to, added);
      return;
    }
    for (const [hour, counts] of added.hours) addUnder(to.slice.hours, hour, counts);
    for (const [name, counts] of added.endpoints) this.addNamed(to, 'endpoints', name, counts);
    for (const [name, counts] of added.customers) this.addNamed(to, 'customers', name, counts);
  }

  /** Adds counts of one hour, endpoint and customer to a slice of the table. */
  addUniform(
    to: TableSlice,
    { hour, endpoint, customerId, counts }: Pick<UniformUsage, 'hour' | 'endpoint' | 'customerId' | 'counts'>,
  ): void {
    addUnder(to.slice.hours, hour, counts);
    this.addNamed(to, 'endpoints', endpoint, counts);
    this.addNamed(to, 'customers', customerId, counts);
  }

  /** Adds to a list of a slice. Positional parameters: an object for each name would be garbage by the thousand. */
  addNamed({ slice, ofDay }: TableSlice, list: keyof NameCaps, name: string, counts: Readonly<Counts>): void {
    const isKnown = slice[list].has(name) || ofDay.slices.some((each) => each[list].has(name));
    const isNew = name !== OTHER && !isKnown;
    const hasRoom = !isNew || ofDay[list] < this.#caps[list];
    if (isNew && hasRoom) ofDay[list] += 1;
    addUnder(slice[list], hasRoom ? name : OTHER, counts);
  }

  /**
   * The slice of an id, which is the key, the day and the plan separated by tabs, for counts of one hour or, if that is undefined, of
   * several.
   */
  sliceOf(id: string, hour: number | undefined, lastUsedAtS: number): TableSlice {
    const name = hour === undefined || !this.#isApart(id, hour) ? id : `${id}\t${hour}`;
    let found = this.#slices.get(name);
    if (found === undefined) {
      const [keyId = '', day, planId = ''] = id.split('\t');
      found = { slice: emptySlice(keyId, Number(day), planId), ofDay: this.#dayOf(id) };
      found.ofDay.slices.push(found.slice);
      this.#slices.set(name, found);
    }
    found.slice.lastUsedAtS = Math.max(found.slice.lastUsedAtS, lastUsedAtS);
    return found;
  }

  #dayOf(id: string): SlicesOfDay {
    let ofDay = this.#days.get(id);
    if (ofDay === undefined) {
      ofDay = { slices: [], hoursApart: 0, endpoints: 0, customers: 0 };
      this.#days.set(id, ofDay);
    }
    return ofDay;
  }

  #isApart(id: string, hour: number): boolean {
    if (this.#slices.has(`${id}\t${hour}`)) return true;
    const ofDay = this.#dayOf(id);
    if (ofDay.hoursApart >= this.#hoursApart) return false;
    ofDay.hoursApart += 1;
    return true;
  }
}
