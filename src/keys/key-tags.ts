import type { ChangeContext } from '../audit/change-context.ts';
import { InvalidBody } from '../errors.ts';
import { unitedTags } from '../permissions/visible-records.ts';
import type { KeyChanges } from './key-repository.ts';

/** The form of a tag. */
export const TAG = /^[a-z0-9][a-z0-9:._-]{0,63}$/;
/** The form of a tag, as the end of a sentence. */
export const TAG_RULE = 'of a lower case letter or digit and up to 63 lower case letters, digits and : . _ -';

export function isTag(text: string): boolean {
  return TAG.test(text);
}

/** Adds the tags that the caller is limited to: callers must see the keys that they make. Throws `InvalidBody` if these are too many. */
export function withOwnTags(
  tags: readonly string[],
  { onlyTags }: Pick<ChangeContext, 'onlyTags'>,
): readonly string[] {
  return unitedTags('tags', [...tags, ...onlyTags]);
}

/**
 * The changes, which keep the tags that the caller is limited to. Throws `InvalidBody` if they remove one of these, or set too many tags.
 */
export function withinOwnTags(changes: KeyChanges, change: Pick<ChangeContext, 'onlyTags'>): KeyChanges {
  const { tags } = changes;
  requireOwnTags(changes, change, 'removeTags');
  return tags === undefined ? changes : { ...changes, tags: withOwnTags(tags, change) };
}

/** Throws `InvalidBody` for the field with the tags to remove, if the caller is limited to one of these. */
export function requireOwnTags(
  { removeTags = [] }: KeyChanges,
  { onlyTags }: Pick<ChangeContext, 'onlyTags'>,
  field: 'removeTags' | 'tags',
): void {
  if (!removeTags.some((tag) => onlyTags.includes(tag))) return;
  throw new InvalidBody([{ field, message: 'must not have tags that the admin token is limited to' }]);
}
