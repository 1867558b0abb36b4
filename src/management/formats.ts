import type { Formats } from '../http/body-schema.ts';
import { parseIsoUtc } from '../http/timestamps.ts';
import { parsePeriod } from '../limiter/period.ts';

const NAME_LENGTH = 255;
const CONTROL_CHARACTER = /\p{Cc}/u;

/** What the bodies' schemas can't say with JSON Schema's own keywords. */
export const BODY_FORMATS: Formats = {
  'key-name': isKeyName,
  'stored-text': isStorable,
  period: (text) => parsePeriod(text) !== undefined,
  'utc-instant': (text) => parseIsoUtc(text) !== undefined,
};

/** Lengths are code points, so that an emoji counts as one character, and count after trimming. */
function isKeyName(text: string): boolean {
  const name = text.trim();
  const length = [...name].length;
  return length >= 1 && length <= NAME_LENGTH && isStorable(name) && !CONTROL_CHARACTER.test(name);
}

/** Postgres stores neither NUL nor half a surrogate pair; text with them could not be given back as it was sent. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}
