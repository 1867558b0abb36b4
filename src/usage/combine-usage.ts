import { capNames, MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from './cap-names.ts';
import type { UsageBatch } from './live-usage.ts';
import type { CustomerUsage, EndpointUsage, KeyTotals, KeyUsage, UsageCounts } from './usage-counts.ts';
import type { KeyHistory } from './usage-history.ts';
import { addCounts, addUnder, type Counts, noCounts, totalsOf, type UsageSlice } from './usage-slice.ts';

/**
 * A key's usage: its history, and the pending batches that were read before the history. Batches that the history has already are left out;
 * it has the last id of each source.
 */
export function combineUsage(pending: readonly UsageBatch[], history: KeyHistory): KeyUsage {
  const slices = slicesNotIn(pending, history.lastIds);
  const endpoints = merge(
    history.endpoints,
    slices.map((slice) => slice.endpoints),
    MAX_ENDPOINTS,
  );
  const customers = merge(
    history.customers,
    slices.map((slice) => slice.customers),
    MAX_CUSTOMERS,
  );
  return {
    ...totalsWith(slices, history),
    endpoints: [...endpoints].toSorted(byRequests).map(endpointUsage),
    customers: [...customers].toSorted(byRequests).map(customerUsage),
  };
}

/** Combines only the totals of a key. `pending` may have counts of other keys of its shard. */
export function combineTotals(
  keyId: string,
  pending: readonly UsageBatch[],
  history: Pick<KeyHistory, 'lastIds' | 'totals' | 'lastUsedAtMs'>,
): KeyTotals {
  const ofKey = slicesNotIn(pending, history.lastIds).filter((slice) => slice.keyId === keyId);
  return totalsWith(ofKey, history);
}

function totalsWith(
  slices: readonly UsageSlice[],
  history: Pick<KeyHistory, 'totals' | 'lastUsedAtMs'>,
): KeyTotals {
  const totals = noCounts();
  addCounts(totals, history.totals);
  for (const slice of slices) addCounts(totals, totalsOf(slice));
  const lastUses = slices.map(({ lastUsedAtS }) => lastUsedAtS * 1000);
  return { ...outcomes(totals), lastUsedAtMs: Math.max(history.lastUsedAtMs ?? 0, ...lastUses) || null };
}

/** The slices of the batches that are not in a history with these last ids, in the order in which they will be moved. */
function slicesNotIn(
  pending: readonly UsageBatch[],
  lastIds: ReadonlyMap<string, number>,
): readonly UsageSlice[] {
  return pending
    .filter(({ source, id }) => id > (lastIds.get(source) ?? 0))
    .toSorted((a, b) => a.id - b.id)
    .flatMap(({ slices }) => slices);
}

/** Adds lists to the history's list, whose caps decide which new names are summed under `__other__`. */
function merge(
  history: ReadonlyMap<string, Counts>,
  added: readonly ReadonlyMap<string, Counts>[],
  cap: number,
): ReadonlyMap<string, Counts> {
  const room = cap - history.size + (history.has(OTHER) ? 1 : 0);
  const names = new Set(added.flatMap((list) => [...list.keys()]));
  const places = capNames(names, (name) => history.has(name), room);
  const merged = new Map<string, Counts>();
  for (const list of [history, ...added]) {
    for (const [name, counts] of list) addUnder(merged, places.get(name) ?? name, counts);
  }
  return merged;
}

/** Most requests first, ties by name: the order of every list of the detail response. */
function byRequests(
  [nameA, a]: readonly [string, Readonly<Counts>],
  [nameB, b]: readonly [string, Readonly<Counts>],
): number {
  if (a.requests !== b.requests) return b.requests - a.requests;
  if (nameA === nameB) return 0;
  return nameA < nameB ? -1 : 1;
}

function outcomes({ requests, successful }: Readonly<Counts>): UsageCounts {
  return { requests, successful, failed: requests - successful };
}

function endpointUsage([endpoint, counts]: readonly [string, Counts]): EndpointUsage {
  return { endpoint, ...outcomes(counts), averageResponseTimeMs: averageMs(counts) };
}

/** The mean over forwarded requests, two decimals; 0 when none was forwarded. */
export function averageMs({ forwarded, forwardedUs }: Pick<Counts, 'forwarded' | 'forwardedUs'>): number {
  return forwarded === 0 ? 0 : Math.round(forwardedUs / forwarded / 10) / 100;
}

function customerUsage([customerId, counts]: readonly [string, Counts]): CustomerUsage {
  return { customerId, ...outcomes(counts) };
}
