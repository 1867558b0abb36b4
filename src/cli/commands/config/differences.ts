import type { paths } from '../../../client/management-api.ts';
import type { Listing } from '../../output/columns.ts';

/** What applying a configuration would change. */
export type Difference =
  paths['/tollgate/config/diff']['post']['responses'][200]['content']['application/json'];
/** The changes that applying a configuration has made, and the secrets of new keys. */
export type Applied =
  paths['/tollgate/config/apply']['post']['responses'][200]['content']['application/json'];
type Change = Difference['changes'][number];

/** The number of changes, and of those in conflict, in a sentence. */
export function summaryOf({ summary, changes }: Difference): string {
  const { create, update, delete: gone, unchanged } = summary;
  const conflicts = changes.filter(({ conflict }) => conflict !== undefined).length;
  const note = conflicts === 0 ? '' : ` In conflict: ${conflicts}.`;
  return `${create} to create, ${update} to change, ${gone} to delete, ${unchanged} unchanged.${note}`;
}

/** Why a change is not made without `--force`; empty where it is made. */
export function conflictOf({ conflict }: Change): string {
  return conflict?.replaceAll('_', ' ') ?? '';
}

/** The fields of a change, each with its present and its new value. Empty for a deletion. */
export function shownFields({ action, fields }: Change): string {
  if (action === 'delete') return '';
  return Object.entries(fields)
    .map(([name, { from, to }]) =>
      action === 'create' ? `${name} ${shown(to)}` : `${name} ${shown(from)} → ${shown(to)}`,
    )
    .join(', ');
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export const CHANGES: Listing<Change> = {
  columns: [
    { name: 'action', toCell: ({ action }) => action },
    { name: 'type', toCell: ({ type }) => type },
    { name: 'id', toCell: ({ id }) => id },
    { name: 'conflict', toCell: conflictOf },
    { name: 'fields', toCell: shownFields },
  ],
  idOf: ({ id }) => id,
  isWhole: true,
};
