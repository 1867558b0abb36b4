import { headerLine } from '../../http/raw-head-response.ts';
import { isoSeconds } from '../../http/timestamps.ts';
import type { KeyEntry } from '../../keys/cache/key-entry.ts';

/** Tells the client of a key that is being rotated from when on its secret is rejected. A backend's own never reaches the client. */
export const KEY_EXPIRY_HEADER = 'Tollgate-Key-Expires';

/** The line of the header; empty for a request with the key's present secret. */
export function keyExpiryLine({ previousUntilMs, snapshot }: KeyEntry): string {
  if (previousUntilMs === null) return '';
  const untilMs = Math.min(previousUntilMs, snapshot.expiresAtMs ?? Number.POSITIVE_INFINITY);
  return headerLine(KEY_EXPIRY_HEADER, isoSeconds(untilMs));
}
