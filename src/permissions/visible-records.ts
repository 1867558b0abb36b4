import type { Principal } from './principal.ts';

/** Whether a principal for which only records with all of `onlyTags` exist sees one with these tags. */
export function isVisible(tags: readonly string[], onlyTags: readonly string[]): boolean {
  return onlyTags.every((tag) => tags.includes(tag));
}

/** The tags, and those that the principal is limited to: what it makes or changes is limited to these, too. */
export function withTagsOf(
  tags: readonly string[],
  { onlyTags }: Pick<Principal, 'onlyTags'>,
): readonly string[] {
  return [...new Set([...onlyTags, ...tags])];
}
