import type { ConsumerKey } from '../../keys/consumer-key.ts';
import { ANONYMOUS_CUSTOMER } from '../../limiter/request-limits.ts';
import type { KeyTotals } from '../../usage/usage-counts.ts';
import type { Endpoint, ManagementServices } from '../endpoint.ts';
import { pageSchema } from '../list-page.ts';
import { named, objectOf } from '../response-schemas.ts';
import { presentTotals, SHOWN_TOTALS } from './consumer-key-detail.ts';
import { KEY_LIST_QUERY, readKeyListQuery } from './key-list-query.ts';
import { ifAvailable, presentCounters, SHOWN_COUNTERS } from './shown-counters.ts';
import { KEY_ITEM_FIELDS, presentKeyItem } from './shown-key-fields.ts';

/** A key, with the fields that `include` requests. */
const LISTED_KEY = named(
  'ListedConsumerKey',
  objectOf(KEY_ITEM_FIELDS, {
    usage: named('UsageTotals', objectOf(SHOWN_TOTALS)),
    limits: { ...SHOWN_COUNTERS, description: 'With include=limits.' },
  }),
);

/** Lists keys without their secrets. The number of store calls does not grow with the page. */
export const listConsumerKeys: Endpoint = {
  method: 'get',
  path: '/consumer-api-key',
  operationId: 'listConsumerKeys',
  summary: 'List consumer API keys',
  scope: 'keys:read',
  query: KEY_LIST_QUERY,
  status: 200,
  response: pageSchema('apiKeys', LISTED_KEY, 'keys'),
  errors: ['invalid_cursor'],
  async handle({ query, principal }, services) {
    const { selection: requested, includes, isCounted, cursorAfter } = readKeyListQuery(query);
    const tags = [...(requested.filter.tags ?? []), ...principal.onlyTags];
    const selection = { ...requested, filter: { ...requested.filter, tags } };
    const [page, total] = await Promise.all([
      services.keys.page(selection),
      isCounted ? services.keys.count(selection.filter) : undefined,
    ]);
    const keyIds = page.keys.map(({ id }) => id);
    const [usage, limits] = await Promise.all([
      includes.has('usage') ? services.usage.totals(keyIds) : undefined,
      includes.has('limits') ? readLimits(keyIds, services) : undefined,
    ]);
    return {
      apiKeys: page.keys.map((key) => ({
        ...presentKeyItem(withLastUse(key, usage?.get(key.id))),
        ...(usage !== undefined && { usage: usageOf(key.id, usage) }),
        ...(limits !== undefined && { limits: limits.get(key.id) ?? [] }),
      })),
      nextCursor: page.next && cursorAfter(page.next),
      total,
    };
  },
};

/** Takes the last use from the usage if it was requested: there it is exact, while the key's own lags behind. */
function withLastUse(key: ConsumerKey, usage: KeyTotals | undefined): ConsumerKey {
  return usage === undefined ? key : { ...key, lastUsedAtMs: usage.lastUsedAtMs };
}

const NEVER_USED: KeyTotals = { requests: 0, successful: 0, failed: 0, lastUsedAtMs: null };

function usageOf(keyId: string, usage: ReadonlyMap<string, KeyTotals>): object {
  return presentTotals(usage.get(keyId) ?? NEVER_USED);
}

/** The counters by key id, without keys that were deleted in the meantime. */
async function readLimits(
  keyIds: readonly string[],
  services: ManagementServices,
): Promise<ReadonlyMap<string, readonly object[]>> {
  const snapshots = await services.keys.snapshots(keyIds);
  const requests = snapshots.map(({ keyId, plan }) => ({
    keyId,
    limits: plan?.limits.all ?? [],
    customerId: ANONYMOUS_CUSTOMER,
  }));
  const counts = await ifAvailable(services.counters.readAll(requests));
  return new Map(
    snapshots.map(({ keyId, plan }, index) => {
      const ofKey = counts?.[index];
      return [keyId, presentCounters(plan, ofKey, ofKey?.nowMs ?? services.clock.nowMs())];
    }),
  );
}
