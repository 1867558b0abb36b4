import type { UsageBatch } from '../../../src/usage/live-usage.ts';
import { NO_CAPS, SliceTable } from '../../../src/usage/slice-table.ts';
import type { CompletedRequest } from '../../../src/usage/usage-buffer.ts';
import {
  addUnder,
  type Counts,
  emptySlice,
  noCounts,
  type RecordedUsage,
  totalsOf,
  type UsageSlice,
} from '../../../src/usage/usage-slice.ts';

/** An hour, and the day that it is in. */
export const HOUR = 490_000;
const DAY = 20_416;

/** A request, or many alike. */
export interface SampleRequest {
  readonly endpoint: string;
  readonly customer: string;
  readonly successful: boolean;
  readonly hour: number;
  readonly times: number;
  readonly forwardedUs: number;
}

/** The slice of these requests with a key. */
export function sliceOf(keyId: string, ...requests: readonly Partial<SampleRequest>[]): UsageSlice {
  const slice = emptySlice(keyId, DAY, 'gold');
  slice.lastUsedAtS = (HOUR + 1) * 3600;
  for (const request of requests) {
    const { endpoint = '/a', customer = 'anonymous', successful = true, hour = HOUR, times = 1 } = request;
    const counts: Counts = {
      ...noCounts(),
      requests: times,
      successful: successful ? times : 0,
      serverErrors: successful ? 0 : times,
      forwarded: request.forwardedUs === undefined ? 0 : times,
      forwardedUs: (request.forwardedUs ?? 0) * times,
    };
    addUnder(slice.endpoints, endpoint, counts);
    addUnder(slice.customers, customer, counts);
    addUnder(slice.hours, hour, counts);
  }
  return slice;
}

/** So many requests, each with its own endpoint and customer. */
export function manyNames(keyId: string, count: number, prefix = ''): UsageSlice {
  const named = (index: number) => ({ endpoint: `/${prefix}${index}`, customer: `${prefix}${index}` });
  return sliceOf(keyId, ...Array.from({ length: count }, (_, index) => named(index)));
}

/** All sums of what was recorded, as a store that forgets nothing has them. */
export function addedUp(all: readonly RecordedUsage[]): readonly UsageSlice[] {
  const table = new SliceTable(NO_CAPS);
  for (const each of all) table.add(each);
  return table.slices;
}

/** Requests of a list in all. */
export function requestsIn(list: Iterable<Readonly<Pick<Counts, 'requests'>>>): number {
  let requests = 0;
  for (const counts of list) requests += counts.requests;
  return requests;
}

/** Requests that were recorded, or are in the slices of batches, in all. */
export function requestsOf(all: readonly (RecordedUsage | UsageBatch)[]): number {
  const recorded = all.flatMap((each) => ('slices' in each ? each.slices : each));
  return requestsIn(recorded.map(totalsOf));
}

/** A request that went well. */
export function completed(fields: Partial<CompletedRequest> = {}): CompletedRequest {
  return {
    keyId: 'key',
    planId: 'gold',
    endpoint: '/a',
    customerId: 'c',
    status: 200,
    successful: true,
    rateLimited: false,
    shadowLimited: 0,
    units: 0,
    responseTimeMs: 1,
    bytesIn: 0,
    bytesOut: 0,
    ...fields,
  };
}
