import { TollgateError } from '../errors.ts';
import { isKeyId } from './key-id.ts';

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
