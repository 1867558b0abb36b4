import { isUtf8 } from 'node:buffer';

/** Decodes UTF-8 without its byte order mark; undefined if the bytes are in another encoding, of which letters would be lost. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  return isUtf8(bytes) ? new TextDecoder().decode(bytes) : undefined;
}
