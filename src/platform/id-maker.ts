import { monotonicFactory } from 'ulid';
import type { Clock } from './clock.ts';
import type { Random } from './random.ts';

/** Makes ids: a prefix and a ULID. Each id sorts after the previous one of the same maker, even if the clock goes back. */
export function idMaker(prefix: string, clock: Clock, random: Random): () => string {
  const ulid = monotonicFactory(() => (random.bytes(1)[0] ?? 0) / 256);
  return () => `${prefix}${ulid(clock.nowMs())}`;
}

/** Tests whether a text has the form of the ids with a prefix. */
export function idTest(prefix: string): (text: string) => boolean {
  const form = new RegExp(`^${prefix}[0-9A-HJKMNP-TV-Z]{26}$`);
  return (text) => form.test(text);
}
