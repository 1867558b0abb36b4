import { addCounts, addUnder, type Counts, noUsage, type UsageSums } from '../../../src/usage/usage-sums.ts';

export const HOUR = 490_000;

/** A request, or many alike. */
export interface SampleRequest {
  readonly endpoint: string;
  readonly customer: string;
  readonly successful: boolean;
  readonly hour: number;
  readonly times: number;
  readonly forwardedUs: number;
}

/** The sums of these requests. */
export function usageOf(...requests: readonly Partial<SampleRequest>[]): UsageSums {
  const sums = noUsage();
  for (const request of requests) {
    const { endpoint = '/a', customer = 'anonymous', successful = true, hour = HOUR, times = 1 } = request;
    const counts: Counts = {
      requests: times,
      successful: successful ? times : 0,
      forwarded: request.forwardedUs === undefined ? 0 : times,
      forwardedUs: (request.forwardedUs ?? 0) * times,
    };
    addCounts(sums.totals, counts);
    addUnder(sums.endpoints, endpoint, counts);
    addUnder(sums.customers, customer, counts);
    addUnder(sums.hours, hour, counts);
  }
  return sums;
}

/** So many requests, each with an endpoint and a customer of its own. */
export function manyNames(count: number, prefix = ''): UsageSums {
  return usageOf(
    ...Array.from({ length: count }, (_, index) => ({
      endpoint: `/${prefix}${index}`,
      customer: `${prefix}${index}`,
    })),
  );
}

/** All sums of several, as a store that forgets nothing has them. */
export function addedUp(all: readonly UsageSums[]): UsageSums {
  const sums = noUsage();
  for (const each of all) {
    addCounts(sums.totals, each.totals);
    for (const list of ['endpoints', 'customers'] as const) {
      for (const [name, counts] of each[list]) addUnder(sums[list], name, counts);
    }
    for (const [hour, counts] of each.hours) addUnder(sums.hours, hour, counts);
  }
  return sums;
}

/** Requests of a list in all. */
export function requestsIn(list: Iterable<Readonly<Pick<Counts, 'requests'>>>): number {
  let requests = 0;
  for (const counts of list) requests += counts.requests;
  return requests;
}
