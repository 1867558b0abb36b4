import type { Clock } from '../platform/clock.ts';
import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from './cap-names.ts';
import { shardOf } from './shards.ts';
import { HOURS_APART } from './slice-table.ts';
import { customerName, endpointName } from './usage-names.ts';
import {
  addCounts,
  type Counts,
  emptySlice,
  HOURS_A_DAY,
  noCounts,
  type RecordedUsage,
  type UniformUsage,
  type UsageSlice,
} from './usage-slice.ts';

/** One authenticated request whose response has closed. */
export interface CompletedRequest {
  readonly keyId: string;
  /** The plan that applied; empty when none did. */
  readonly planId: string;
  /** Path without query; the recorder cuts it to 256 bytes. */
  readonly endpoint: string;
  /** Value of the customer header, at most 128 printable characters, or `anonymous`. */
  readonly customerId: string;
  /** As sent to the client; 0 when the client left before there was one. */
  readonly status: number;
  /** See `isSuccessful`. */
  readonly successful: boolean;
  /** Rejected by a limit of the gateway. */
  readonly rateLimited: boolean;
  /** Windows in shadow mode that would have rejected it. */
  readonly shadowLimited: number;
  /** What it cost; 0 if it was not allowed. */
  readonly units: number;
  /** Milliseconds from the request's start to the response's close; null when it was not forwarded. */
  readonly responseTimeMs: number | null;
  /** Bytes of the request's body that went to the backend, and of the response's body that came from it. */
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Whether a request counts as successful: its final status is below 400, and the response was sent completely. */
export function isSuccessful(status: number, isSent: boolean): boolean {
  return isSent && status < 400;
}

/** Records a completed request. Never throws, never waits, writes nothing per request. */
export interface UsageRecorder {
  record(request: CompletedRequest): void;
}

const HOUR_MS = 3_600_000;
/** A duration beyond this makes no sense. Milliseconds. */
const LONGEST_MS = 366 * 24 * HOUR_MS;
/** Most names of all keys together, about 400 bytes each. The number of keys needs no bound: only existing keys are recorded. */
const MAX_NAMES = 50_000;
/** Most slices of one key. If a store is unavailable for days, or plans change meanwhile, further usage goes into the last slice. */
const MAX_SLICES = 8;

/** What a buffer needs. */
export interface UsageBufferOptions {
  readonly clock: Clock;
  /** Masks credentials in a path or a customer's id: a client may put its key anywhere. */
  readonly mask: (name: string) => string;
}

/**
 * What this replica has recorded and not yet written: plain numbers, added to in place. Bounded for any traffic and any outage
 * of the store: names beyond a cap are summed under `__other__`, and the totals stay exact.
 */
export class UsageBuffer implements UsageRecorder {
  readonly #clock: Clock;
  readonly #mask: (name: string) => string;
  /** Edited in place: this is the hot path. */
  readonly #added: Counts = noCounts();
  #keys = new Map<string, UniformUsage | UsageSlice[]>();
  #names = 0;

  constructor({ clock, mask }: UsageBufferOptions) {
    this.#clock = clock;
    this.#mask = mask;
  }

  /** Keys that have something to be written. */
  get size(): number {
    return this.#keys.size;
  }

  record(request: CompletedRequest): void {
    const nowMs = this.#clock.nowMs();
    const nowS = Math.floor(nowMs / 1000);
    const hour = Math.floor(nowMs / HOUR_MS);
    const added = this.#count(request);
    const known = this.#keys.get(request.keyId);
    if (known === undefined) {
      this.#keys.set(request.keyId, this.#begin(request, hour, nowS));
      return;
    }
    if (!Array.isArray(known) && isSame(known, request, hour)) {
      addCounts(known.counts, added);
      known.lastUsedAtS = nowS;
      return;
    }
    const slice = this.#sliceOf(known, hour, request);
    slice.lastUsedAtS = nowS;
    addCounts(slice.hours.get(hour) ?? openHour(slice, hour), added);
    addCounts(slice.endpoints.get(request.endpoint) ?? this.#endpoint(slice, request.endpoint), added);
    addCounts(slice.customers.get(request.customerId) ?? this.#customer(slice, request.customerId), added);
  }

  /** Removes and returns the records by shard. Those of the shards in `except` stay in the buffer. */
  take(except: ReadonlyMap<number, unknown>): ReadonlyMap<number, readonly RecordedUsage[]> {
    const all = this.#keys;
    this.#keys = new Map();
    this.#names = 0;
    const taken = new Map<number, RecordedUsage[]>();
    for (const [keyId, ofKey] of all) {
      const shard = shardOf(keyId);
      if (except.has(shard)) {
        this.#keys.set(keyId, ofKey);
        this.#names += namesIn(ofKey);
        continue;
      }
      const ofShard = taken.get(shard) ?? [];
      if (ofShard.length === 0) taken.set(shard, ofShard);
      if (Array.isArray(ofKey)) ofShard.push(...ofKey);
      else ofShard.push(ofKey);
    }
    return taken;
  }

  /** The record of a key after its first request. */
  #begin(
    { keyId, planId, endpoint, customerId }: CompletedRequest,
    hour: number,
    nowS: number,
  ): UniformUsage {
    const hasRoom = this.#names < MAX_NAMES;
    this.#names += 2;
    return {
      keyId,
      hour,
      planId,
      endpoint: hasRoom ? this.#endpointName(endpoint) : OTHER,
      customerId: hasRoom ? this.#customerName(customerId) : OTHER,
      counts: { ...this.#added },
      lastUsedAtS: nowS,
    };
  }

  #count(request: CompletedRequest): Readonly<Counts> {
    const added = this.#added;
    added.requests = 1;
    added.successful = request.successful ? 1 : 0;
    added.forwarded = request.responseTimeMs === null ? 0 : 1;
    added.forwardedUs = microseconds(request.responseTimeMs);
    added.bytesIn = request.bytesIn;
    added.bytesOut = request.bytesOut;
    added.rateLimited = request.rateLimited ? 1 : 0;
    added.clientErrors = request.status >= 400 && request.status < 500 ? 1 : 0;
    added.serverErrors = request.status >= 500 ? 1 : 0;
    added.shadowLimited = request.shadowLimited;
    added.units = request.units;
    return added;
  }

  #sliceOf(
    known: UniformUsage | UsageSlice[],
    hour: number,
    { keyId, planId }: CompletedRequest,
  ): UsageSlice {
    const slices = Array.isArray(known) ? known : [sliceOfUniform(known)];
    if (slices !== known) this.#keys.set(keyId, slices);
    const day = Math.floor(hour / HOURS_A_DAY);
    let ofDay: UsageSlice | undefined;
    for (const slice of slices) {
      if (slice.day !== day || slice.planId !== planId) continue;
      if (slice.hours.has(hour)) return slice;
      ofDay = slice;
    }
    if (ofDay !== undefined && slices.length >= HOURS_APART) return ofDay;
    const last = slices.at(-1);
    if (last !== undefined && slices.length >= MAX_SLICES) return last;
    const slice = emptySlice(keyId, day, planId);
    slices.push(slice);
    return slice;
  }

  // Names in the lists are masked and cut already, so only new ones have to be.
  #endpoint(slice: UsageSlice, path: string): Counts {
    return this.#place(slice.endpoints, this.#endpointName(path), MAX_ENDPOINTS);
  }

  #customer(slice: UsageSlice, id: string): Counts {
    return this.#place(slice.customers, this.#customerName(id), MAX_CUSTOMERS);
  }

  #endpointName(path: string): string {
    return endpointName(this.#mask(path));
  }

  #customerName(id: string): string {
    return customerName(this.#mask(id));
  }

  #place(list: Map<string, Counts>, name: string, cap: number): Counts {
    const known = list.get(name);
    if (known !== undefined) return known;
    const named = list.size - (list.has(OTHER) ? 1 : 0);
    if (name !== OTHER && (named >= cap || this.#names >= MAX_NAMES)) {
      return this.#place(list, OTHER, cap);
    }
    const counts = noCounts();
    list.set(name, counts);
    this.#names += 1;
    return counts;
  }
}

/** Whether a request can be added to these counts. False for names that were masked or cut: they differ from what the client sent. */
function isSame(uniform: UniformUsage, request: CompletedRequest, hour: number): boolean {
  const { planId, endpoint, customerId } = uniform;
  return (
    uniform.hour === hour &&
    planId === request.planId &&
    endpoint === request.endpoint &&
    customerId === request.customerId
  );
}

function sliceOfUniform(uniform: UniformUsage): UsageSlice {
  const { keyId, hour, planId, endpoint, customerId, counts, lastUsedAtS } = uniform;
  const slice = { ...emptySlice(keyId, Math.floor(hour / HOURS_A_DAY), planId), lastUsedAtS };
  slice.hours.set(hour, counts);
  slice.endpoints.set(endpoint, { ...counts });
  slice.customers.set(customerId, { ...counts });
  return slice;
}

function namesIn(ofKey: UniformUsage | readonly UsageSlice[]): number {
  if ('counts' in ofKey) return 2;
  return ofKey.reduce((names, { endpoints, customers }) => names + endpoints.size + customers.size, 0);
}

/** The counts of an hour that the slice does not have. Usage of another day is added to the last hour that the slice has. */
function openHour(slice: UsageSlice, hour: number): Counts {
  const last = slice.hours.size > 0 && Math.floor(hour / HOURS_A_DAY) !== slice.day;
  const known = last ? [...slice.hours.values()].at(-1) : undefined;
  if (known !== undefined) return known;
  const counts = noCounts();
  slice.hours.set(hour, counts);
  return counts;
}

/** Whole microseconds; 0 for no duration, and for one that is negative or longer than a year. */
function microseconds(ms: number | null): number {
  return ms !== null && ms > 0 && ms < LONGEST_MS ? Math.round(ms * 1000) : 0;
}
