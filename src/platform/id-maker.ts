import { monotonicFactory } from 'ulid';
import type { Clock } from './clock.ts';
import type { Random } from './random.ts';

/** Makes ids: a prefix and a ULID. Each id of one maker sorts after the one before, also when the clock goes back. */
export function idMaker(prefix: string, clock: Clock, random: Random): () => string {
  const ulid = monotonicFactory(() => (random.bytes(1)[0] ?? 0) / 256);
  return () => `${prefix}${ulid(clock.nowMs())}`;
}
