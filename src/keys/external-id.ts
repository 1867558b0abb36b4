import { hasBidiControl, isStorable, lengthOf } from '../platform/text/storable-text.ts';

/** Longest `externalId` of a key, in code points. */
export const MAX_EXTERNAL_ID = 128;

/** Whether a text may be the id of a key's owner in another system: 1 … 128 code points, no bidirectional controls. */
export function isExternalId(text: string): boolean {
  const length = lengthOf(text);
  return length >= 1 && length <= MAX_EXTERNAL_ID && isStorable(text) && !hasBidiControl(text);
}
