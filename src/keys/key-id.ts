import { TollgateError } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import { idMaker } from '../platform/id-maker.ts';
import type { Random } from '../platform/random.ts';

const SHAPE = /^key_[0-9A-HJKMNP-TV-Z]{26}$/;

/** Makes key ids: `key_` and a ULID. Each id of one maker sorts after the one before, also when the clock goes back. */
export function keyIdMaker(clock: Clock, random: Random): () => string {
  return idMaker('key_', clock, random);
}

/** Whether a text has the form of a key id. */
export function isKeyId(text: string): boolean {
  return SHAPE.test(text);
}

/** The cursor of the page that begins after this key. Opaque to callers, so that we may change what it holds. */
export function cursorAfter(keyId: string): string {
  return Buffer.from(keyId).toString('base64url');
}

/** The key id that a cursor holds. Throws `invalid_parameter` for a text that `cursorAfter` can not have made. */
export function idOfCursor(cursor: string): string {
  const keyId = Buffer.from(cursor, 'base64url').toString();
  if (!isKeyId(keyId) || cursorAfter(keyId) !== cursor) {
    throw new TollgateError('invalid_parameter', 'The cursor is not one that a list of keys has given.');
  }
  return keyId;
}
