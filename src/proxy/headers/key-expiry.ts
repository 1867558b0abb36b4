import { headerLine } from '../../http/raw-head-response.ts';
import { isoSeconds } from '../../http/timestamps.ts';
import type { KeyEntry } from '../../keys/cache/key-entry.ts';

/** Tells a client with the previous secret of a rotated key when that secret expires. A backend's header of this name is dropped. */
export const KEY_EXPIRY_HEADER = 'Tollgate-Key-Expires';

/** The line of the header; empty for a request with the key's current secret. */
export function keyExpiryLine({ previousUntilMs, snapshot }: KeyEntry): string {
  if (previousUntilMs === null) return '';
  const untilMs = Math.min(previousUntilMs, snapshot.expiresAtMs ?? Number.POSITIVE_INFINITY);
  return headerLine(KEY_EXPIRY_HEADER, isoSeconds(untilMs));
}
