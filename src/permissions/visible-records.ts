import type { Grant, Principal } from './principal.ts';

/** Whether a principal for which only records with all of `onlyTags` exist sees one with these tags. */
export function isVisible(tags: readonly string[], onlyTags: readonly string[]): boolean {
  return onlyTags.every((tag) => tags.includes(tag));
}

/**
 * The tags, after those that the principal is limited to: what it makes or changes is limited to these, too. Tags that have these already
 * keep their order, so that a change of something else is none of them.
 */
export function withTagsOf(
  tags: readonly string[],
  { onlyTags }: Pick<Principal, 'onlyTags'>,
): readonly string[] {
  return isVisible(tags, onlyTags) ? tags : [...new Set([...onlyTags, ...tags])];
}

/** Whether the first permits all that the second does: its scopes, for all keys that it shows. */
export function includesGrant(grant: Grant, other: Grant): boolean {
  return (
    other.scopes.every((scope) => grant.scopes.includes(scope)) && isVisible(other.onlyTags, grant.onlyTags)
  );
}
