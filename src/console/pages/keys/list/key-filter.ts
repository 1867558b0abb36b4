import type { paths } from '../../../../client/management-api.ts';
import { useAddress } from '../../../api/use-address.ts';
import type { Option } from '../../../components/forms/field.tsx';
import { focusFilters } from '../../../components/forms/focus-filters.ts';
import type { Sort } from '../../../components/layout/data-table.tsx';
import { SOON_DAYS } from '../key-state.tsx';

export type KeyListQuery = NonNullable<paths['/consumer-api-key']['get']['parameters']['query']>;

/** The states to choose from. The first is the default. */
export const STATES: readonly Option[] = [
  ['active', 'Active'],
  ['expiring', `Expire within ${SOON_DAYS} days`],
  ['disabled', 'Disabled'],
  ['expired', 'Expired'],
  ['all', 'All'],
];

const FILTERS = [
  'q',
  'status',
  'rateLimitId',
  'tag',
  'externalId',
  'unusedSince',
  'createdBefore',
  'expiresBefore',
] as const;
type FilterName = (typeof FILTERS)[number];
const SORTS = ['createdAt', 'name', 'lastUsedAt', 'expiresAt'] as const;

/** The search, the filters and the sort order of the list. They are in the URL, as in the management interface, to be shared. */
export interface KeyFilter {
  readonly get: (name: FilterName) => string;
  readonly set: (name: FilterName, value: string) => void;
  readonly sort: Sort;
  readonly setSort: (sort: Sort) => void;
  readonly clear: () => void;
  /** Whether the filters hide keys that the list shows by default. */
  readonly isFiltered: boolean;
  /** The query without the state, and the whole query. */
  readonly everyState: KeyListQuery;
  readonly query: KeyListQuery;
}

export function useKeyFilter(): KeyFilter {
  const [params, change] = useAddress();
  const get = (name: FilterName) => params.get(name)?.trim() ?? '';
  const column = SORTS.find((sort) => sort === params.get('sort')) ?? 'createdAt';
  const order = params.get('order') === 'asc' ? 'asc' : params.get('order') === 'desc' ? 'desc' : undefined;
  const sort = {
    column,
    order: order ?? (column === 'name' || column === 'expiresAt' ? 'asc' : 'desc'),
  } as const;
  const given = FILTERS.filter((name) => name !== 'status' && get(name) !== '');
  const everyState: KeyListQuery = {
    ...Object.fromEntries(given.map((name) => [name, get(name)])),
    sort: column,
    order: sort.order,
  };
  const status = get('status') || 'active';
  return {
    get,
    set: (name, value) => change({ [name]: value }),
    sort,
    setSort: (next) => change({ sort: next.column, order: next.order }),
    clear: () => {
      change(Object.fromEntries([...FILTERS, 'sort', 'order'].map((name) => [name, ''])));
      focusFilters();
    },
    isFiltered: given.length > 0 || status !== 'active',
    everyState,
    query: { ...everyState, ...(status !== 'all' && { status }) },
  };
}
