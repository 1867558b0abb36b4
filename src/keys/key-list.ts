import type { ConsumerKey } from './consumer-key.ts';

/** What keys can be sorted by. */
export const KEY_SORTS = ['createdAt', 'name', 'lastUsedAt', 'expiresAt'] as const;

export type KeySort = (typeof KEY_SORTS)[number];

export const SORT_ORDERS = ['asc', 'desc'] as const;

export type SortOrder = (typeof SORT_ORDERS)[number];

/**
 * - `active`: works now. `disabled` and `expired`: do not, and a key may be both.
 * - `expiring`: active, and expires within `EXPIRING_WITHIN_MS`.
 */
export const KEY_STATUSES = ['active', 'disabled', 'expired', 'expiring'] as const;

export type KeyStatus = (typeof KEY_STATUSES)[number];

export const EXPIRING_WITHIN_MS = 30 * 86_400_000;

/** Which keys are listed; a missing field leaves none out. Instants are milliseconds since 1970. */
export interface KeyFilter {
  /** Any of these. */
  readonly ids?: readonly string[];
  /** A part of the name, the owner, the id or the secret's hint, in any case. */
  readonly text?: string;
  /** In any of these states. */
  readonly statuses?: readonly KeyStatus[];
  readonly planId?: string;
  /** With all of these tags. */
  readonly tags?: readonly string[];
  readonly externalId?: string;
  /** Created at `createdFromMs` or later, and before `createdBeforeMs`. */
  readonly createdFromMs?: number;
  readonly createdBeforeMs?: number;
  /** With an expiry before this instant, past or future. */
  readonly expiresBeforeMs?: number;
  /** Never used, or last used before this instant. */
  readonly unusedSinceMs?: number;
}

/** How the list is sorted. Keys with equal values are sorted by their ids. */
export interface KeyOrder {
  readonly sort: KeySort;
  readonly order: SortOrder;
}

/** The position of a key in the list. It stays valid if the key is changed or deleted. */
export interface KeyPosition {
  /** The key's value by which the list is sorted, instants in milliseconds since 1970. Null: never used, or never expires. */
  readonly value: string | number | null;
  readonly id: string;
}

/** A part of the list. */
export interface KeySelection extends KeyOrder {
  readonly filter: KeyFilter;
  readonly limit: number;
  /** Missing: from the start. */
  readonly after?: KeyPosition;
}

/** A page of keys. */
export interface KeyPage {
  readonly keys: readonly ConsumerKey[];
  /** The position after which the next page begins; missing on the last page. */
  readonly next?: KeyPosition;
}

/** Where keys are listed from. Every method is one query, and rejects with `StoreUnavailable` when the store does not respond. */
export interface KeyListStore {
  /**
   * The keys of a part of the list. Keys that were never used count as used before all others, keys that never expire as expiring after all
   * others. Names are sorted without regard to case.
   */
  list(selection: KeySelection, nowMs: number): Promise<readonly ConsumerKey[]>;
  count(filter: KeyFilter, nowMs: number): Promise<number>;
  /** The ids of at most `limit` keys that meet the filter, in their order. */
  ids(filter: KeyFilter, limit: number, nowMs: number): Promise<readonly string[]>;
}

/** Reads a page of the list. */
export async function readKeyPage(
  store: Pick<KeyListStore, 'list'>,
  selection: KeySelection,
  nowMs: number,
): Promise<KeyPage> {
  const { limit, sort } = selection;
  // One more than requested shows whether there is a next page.
  const found = await store.list({ ...selection, limit: limit + 1 }, nowMs);
  const keys = found.slice(0, limit);
  const last = keys.at(-1);
  const hasNext = found.length > limit && last !== undefined;
  return hasNext ? { keys, next: { value: sortedValue(last, sort), id: last.id } } : { keys };
}

function sortedValue(key: ConsumerKey, sort: KeySort): KeyPosition['value'] {
  switch (sort) {
    case 'createdAt':
      return key.createdAtMs;
    case 'name':
      return key.name;
    case 'lastUsedAt':
      return key.lastUsedAtMs;
    case 'expiresAt':
      return key.expiresAtMs;
  }
}
