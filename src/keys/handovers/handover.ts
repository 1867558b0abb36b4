import { hash } from 'node:crypto';
import { idTest } from '../../platform/id-maker.ts';
import type { Random } from '../../platform/random.ts';
import { randomBase62 } from '../../secrets/secret-format.ts';

/** The longest time for which a link works. Seconds. */
export const MAX_HANDOVER_SECONDS = 7 * 24 * 60 * 60;

/** What became of a link. Only `open` ones hand a secret over; those of a disabled key do again once the key is enabled. */
export const HANDOVER_STATES = [
  'open',
  'used',
  'revoked',
  'expired',
  'key_deleted',
  'key_rotated',
  'key_expired',
  'key_disabled',
] as const;

export type HandoverState = (typeof HANDOVER_STATES)[number];

/** A link that hands the secret of a key over, once. It never contains the secret or the link's token. Times: milliseconds since 1970. */
export interface Handover {
  /** `hnd_` and a ULID; newer ones sort after older ones. */
  readonly id: string;
  readonly keyId: string;
  /** A word of the administrator to the consumer; null = none. */
  readonly note: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly usedAtMs: number | null;
  readonly revokedAtMs: number | null;
}

/** What a link depends on of its key. */
export interface HandoverKey {
  readonly enabled: boolean;
  /** Milliseconds since 1970; null = never. */
  readonly expiresAtMs: number | null;
  /** Whether the secret of the link is the key's present one. */
  readonly hasSecret: boolean;
}

/** The state of a link at an instant. `key` is undefined if the key was deleted. */
export function handoverState(
  { usedAtMs, revokedAtMs, expiresAtMs }: Handover,
  key: HandoverKey | undefined,
  nowMs: number,
): HandoverState {
  if (usedAtMs !== null) return 'used';
  if (revokedAtMs !== null) return 'revoked';
  if (expiresAtMs <= nowMs) return 'expired';
  if (key === undefined) return 'key_deleted';
  if (!key.hasSecret) return 'key_rotated';
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs) return 'key_expired';
  return key.enabled ? 'open' : 'key_disabled';
}

const TOKEN_DIGITS = 43;
const TOKEN = /^tgh_[0-9A-Za-z]{43}$/;

/** The token of a new link: `tgh_` and 43 random base62 digits, 256 bits. */
export function createHandoverToken(random: Random): string {
  return `tgh_${randomBase62(TOKEN_DIGITS, random)}`;
}

/** Whether a text has the form of a link's token: any other causes no query. */
export function isHandoverToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Whether a text has the form of a link's id. */
export const isHandoverId = idTest('hnd_');

/** SHA-256 of a token. Without a key: a token can't be guessed from it, and a new encryption key changes nothing. */
export function handoverDigest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
