import { isoSeconds } from '../../platform/timestamps.ts';
import type { EventType } from '../event-types.ts';
import type { OutboxEvent } from '../outbox-event.ts';

/** A notice of a key's expiry. */
export interface ExpiryNotice {
  /** Part of the ids of its events. */
  readonly name: string;
  readonly type: EventType;
  /** How long before the expiry. Milliseconds. */
  readonly beforeMs: number;
}

/** A key of which a notice is due. */
export interface ExpiringKey {
  readonly keyId: string;
  readonly name: string;
  readonly externalId: string | null;
  readonly tags: readonly string[];
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
}

const DAY_MS = 86_400_000;

/** All notices of a key's expiry. */
export const EXPIRY_NOTICES: readonly ExpiryNotice[] = [
  { name: 'expiring_7d', type: 'tollgate.key.expiring', beforeMs: 7 * DAY_MS },
  { name: 'expiring_1d', type: 'tollgate.key.expiring', beforeMs: DAY_MS },
  { name: 'expired', type: 'tollgate.key.expired', beforeMs: 0 },
];

/**
 * The event of a notice. Its id follows from the key, the notice and the expiry: an expiry that is moved has other events. `mask` is applied
 * to what people typed.
 */
export function expiryEvent(
  { name: notice, type, beforeMs }: ExpiryNotice,
  key: ExpiringKey,
  mask: (text: string) => string,
): OutboxEvent {
  const { keyId, name, externalId, tags, expiresAtMs } = key;
  return {
    id: `${keyId}_${notice}_${expiresAtMs}`,
    type,
    subject: keyId,
    atMs: expiresAtMs - beforeMs,
    tags,
    data: JSON.stringify({
      expiresAt: isoSeconds(expiresAtMs),
      name: mask(name),
      externalId: externalId && mask(externalId),
      tags: tags.map(mask),
    }),
  };
}
