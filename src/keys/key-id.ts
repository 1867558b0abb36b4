import type { Clock } from '../platform/clock.ts';
import { idMaker } from '../platform/id-maker.ts';
import type { Random } from '../platform/random.ts';

/** The form of a key id. */
export const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/;

/** Makes key ids: `key_` and a ULID. Each id of one maker sorts after the one before, also when the clock goes back. */
export function keyIdMaker(clock: Clock, random: Random): () => string {
  return idMaker('key_', clock, random);
}

/** Whether a text has the form of a key id. */
export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}
