import { InvalidBody } from '../errors.ts';
import type { Grant, Principal } from './principal.ts';

/** Most tags of a key, and most that a token, a person or a webhook is limited to. */
export const MAX_TAGS = 20;

/** Whether a principal for which only records with all of `onlyTags` exist sees one with these tags. */
export function isVisible(tags: readonly string[], onlyTags: readonly string[]): boolean {
  return onlyTags.every((tag) => tags.includes(tag));
}

/**
 * The tags, after those that the principal is limited to: what it makes or changes is limited to these, too. Tags that have these already
 * keep their order, so that a change of something else is none of them. Throws `InvalidBody` for the field `onlyTags` if there are too many.
 */
export function withTagsOf(
  tags: readonly string[],
  { onlyTags }: Pick<Principal, 'onlyTags'>,
): readonly string[] {
  return isVisible(tags, onlyTags) ? tags : unitedTags('onlyTags', [...onlyTags, ...tags]);
}

/** The tags without duplicates. Throws `InvalidBody` for the field if there are too many. */
export function unitedTags(field: 'tags' | 'onlyTags', tags: readonly string[]): readonly string[] {
  const all = [...new Set(tags)];
  if (all.length <= MAX_TAGS) return all;
  throw new InvalidBody([
    { field, message: `must be at most ${MAX_TAGS} with those that the admin token is limited to` },
  ]);
}

/** Whether the first permits all that the second does: its scopes, for all keys that it shows. */
export function includesGrant(grant: Grant, other: Grant): boolean {
  return (
    other.scopes.every((scope) => grant.scopes.includes(scope)) && isVisible(other.onlyTags, grant.onlyTags)
  );
}
