import { monotonicFactory } from 'ulid';
import type { Clock } from '../platform/clock.ts';
import type { Random } from '../platform/random.ts';

const SHAPE = /^key_[0-9A-HJKMNP-TV-Z]{26}$/;

/** Makes key ids: `key_` and a ULID. Each id of one maker sorts after the one before, also when the clock goes back. */
export function keyIdMaker(clock: Clock, random: Random): () => string {
  const ulid = monotonicFactory(() => (random.bytes(1)[0] ?? 0) / 256);
  return () => `key_${ulid(clock.nowMs())}`;
}

/** Whether a text has the form of a key id. */
export function isKeyId(text: string): boolean {
  return SHAPE.test(text);
}
