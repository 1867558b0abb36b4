import { byRequests, placeNames } from './capped-list.ts';
import type { UsageBatch } from './live-usage.ts';
import type { CustomerUsage, EndpointUsage, KeyUsage, UsageCounts } from './usage.ts';
import type { KeyHistory } from './usage-history.ts';
import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from './usage-names.ts';
import { addCounts, addUnder, type Counts, noCounts } from './usage-sums.ts';

/**
 * A key's usage, from its live counts as they were at one instant and its history as it was at a later one. What the history
 * had taken in by then is not added again: counts have one id from the first of them on, and the history knows the last id it has.
 */
export function combineUsage(live: readonly UsageBatch[], history: KeyHistory): KeyUsage {
  const added = notYetIn(live, history.lastId);
  const totals = noCounts();
  addCounts(totals, history.sums.totals);
  for (const { sums } of added) addCounts(totals, sums.totals);
  const endpoints = merge(
    history.sums.endpoints,
    added.map(({ sums }) => sums.endpoints),
    MAX_ENDPOINTS,
  );
  const customers = merge(
    history.sums.customers,
    added.map(({ sums }) => sums.customers),
    MAX_CUSTOMERS,
  );
  return {
    ...outcomes(totals),
    endpoints: [...endpoints].toSorted(byRequests).map(endpointUsage),
    customers: [...customers].toSorted(byRequests).map(customerUsage),
  };
}

/** Those of the live counts that a history with this last id does not have. */
export function notYetIn(live: readonly UsageBatch[], lastId: number): readonly UsageBatch[] {
  return live.filter(({ id }) => id > lastId);
}

/** Gives new names the places that they will have in the history. */
function merge(
  history: ReadonlyMap<string, Counts>,
  added: readonly ReadonlyMap<string, Counts>[],
  cap: number,
): ReadonlyMap<string, Counts> {
  const merged = new Map<string, Counts>();
  for (const [name, counts] of history) addUnder(merged, name, counts);
  for (const list of added) {
    const isNew = ([name]: readonly [string, Counts]) => !merged.has(name);
    const room = cap - merged.size + (merged.has(OTHER) ? 1 : 0);
    const placed = placeNames([...list].filter(isNew), Math.max(room, 0));
    for (const [name, counts] of list) {
      if (merged.has(name)) addUnder(merged, name, counts);
    }
    for (const [name, counts] of placed) addUnder(merged, name, counts);
  }
  return merged;
}

export function outcomes({ requests, successful }: Readonly<Counts>): UsageCounts {
  return { requests, successful, failed: requests - successful };
}

function endpointUsage([endpoint, counts]: readonly [string, Counts]): EndpointUsage {
  const meanUs = counts.forwarded === 0 ? 0 : counts.forwardedUs / counts.forwarded;
  return { endpoint, ...outcomes(counts), averageResponseTimeMs: Math.round(meanUs / 10) / 100 };
}

function customerUsage([customerId, counts]: readonly [string, Counts]): CustomerUsage {
  return { customerId, ...outcomes(counts) };
}
