import type { components } from '../../../../client/management-api.ts';
import { exactTime } from '../../../format/exact-time.ts';
import { wordsOf } from '../../../format/words-of.ts';
import { instantOf } from '../change/key-draft.ts';
import type { KeyListQuery } from '../list/key-filter.ts';

export type BulkRequest = components['schemas']['ChangeConsumerKeysRequest'];
export type BulkAction = BulkRequest['action'];

/** The keys that are changed: those whose box is ticked, or all that the filter of the list meets. */
export type ChosenKeys = { readonly ids: readonly string[] } | { readonly filter: KeyListQuery };

/** The form: what is done, and the value that the action needs, as it is typed. */
export interface BulkDraft {
  readonly action: BulkAction;
  readonly tags: string;
  /** Empty: the default plan. */
  readonly rateLimitId: string;
  /** The value of an `<input type="datetime-local">`; empty: never. */
  readonly expiresAt: string;
  /** Empty: all overrides. */
  readonly limitId: string;
}

export const EMPTY_BULK: BulkDraft = {
  action: 'disable',
  tags: '',
  rateLimitId: '',
  expiresAt: '',
  limitId: '',
};

interface ActionWords {
  readonly label: string;
  /** What happens to "12 keys". */
  readonly sentence: (keys: string, draft: BulkDraft) => string;
  readonly scope: 'keys:write' | 'keys:delete';
}

export const BULK_ACTIONS: Readonly<Record<BulkAction, ActionWords>> = {
  disable: {
    label: 'Disable',
    sentence: (keys) => `This disables ${keys}: requests get 401.`,
    scope: 'keys:write',
  },
  enable: { label: 'Enable', sentence: (keys) => `This enables ${keys}.`, scope: 'keys:write' },
  'add-tags': {
    label: 'Add tags',
    sentence: (keys) => `This adds the tags to ${keys}.`,
    scope: 'keys:write',
  },
  'remove-tags': {
    label: 'Remove tags',
    sentence: (keys) => `This removes the tags from ${keys}.`,
    scope: 'keys:write',
  },
  'set-plan': {
    label: 'Set plan',
    sentence: (keys) => `This sets the plan of ${keys}.`,
    scope: 'keys:write',
  },
  'set-expiry': {
    label: 'Set expiry',
    sentence: (keys, { expiresAt }) =>
      expiresAt === ''
        ? `This removes the expiry of ${keys}.`
        : `This sets the expiry of ${keys} to ${exactTime(Date.parse(expiresAt))}.`,
    scope: 'keys:write',
  },
  'clear-override': {
    label: 'Clear overrides',
    sentence: (keys) => `This clears overrides of ${keys}.`,
    scope: 'keys:write',
  },
  delete: {
    label: 'Delete',
    sentence: (keys) => `This deletes ${keys} for good: requests get 401.`,
    scope: 'keys:delete',
  },
};

/** The body of the request, without how it is made. */
export function bulkRequestOf(chosen: ChosenKeys, draft: BulkDraft): BulkRequest {
  return { ...keysOf(chosen), action: draft.action, ...actionValue(draft) } as BulkRequest;
}

function keysOf(chosen: ChosenKeys): object {
  if ('ids' in chosen) return { ids: chosen.ids };
  const { sort: _sort, order: _order, ...filter } = chosen.filter;
  return { filter };
}

function actionValue({ action, tags, rateLimitId, expiresAt, limitId }: BulkDraft): object {
  switch (action) {
    case 'add-tags':
    case 'remove-tags':
      return { tags: wordsOf(tags) };
    case 'set-plan':
      return { rateLimitId: rateLimitId || null };
    case 'set-expiry':
      return { expiresAt: expiresAt === '' ? null : instantOf(expiresAt) };
    case 'clear-override':
      return limitId.trim() === '' ? {} : { limitId: limitId.trim() };
    case 'enable':
    case 'disable':
    case 'delete':
      return {};
  }
}
