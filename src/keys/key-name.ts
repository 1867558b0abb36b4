import { hasBidiControl, hasControlCharacter, isStorable, lengthOf } from '../platform/text/storable-text.ts';

/** Longest name of a key, in code points, without the blanks around it. */
export const MAX_KEY_NAME = 255;

/**
 * Whether a text, without the blanks around it, may be a key's name: 1 … 255 code points without control characters, bidirectional ones
 * included.
 */
export function isKeyName(text: string): boolean {
  const name = text.trim();
  const length = lengthOf(name);
  return (
    length >= 1 &&
    length <= MAX_KEY_NAME &&
    isStorable(name) &&
    !hasControlCharacter(name) &&
    !hasBidiControl(name)
  );
}
