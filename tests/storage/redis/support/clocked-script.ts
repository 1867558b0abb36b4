import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

const SCRIPTS = new URL('../../../../src/storage/redis/', import.meta.url);

/** Runs a script of the gateway (`changes/markStale-n`) on a real server, as if its clock stood at an instant. */
export type ClockedScript = (
  nowMs: number,
  keys: readonly string[],
  args?: readonly (string | number)[],
) => Promise<unknown>;

/**
 * Times of expiry are still by the server's clock: the instants of a test lie in the future. `edit` changes the text of the script, to see how it
 * does something.
 */
export function clockedScript(
  redis: () => Redis,
  name: string,
  edit: (text: string) => string = (text) => text,
): ClockedScript {
  const text = edit(readFileSync(new URL(`${name}.lua`, SCRIPTS), 'utf8'));
  const clock = "{ string.sub(clock, 1, -4), string.sub(clock, -3) .. '999' }";
  const clocked = `local clock = table.remove(ARGV)\n${text.replaceAll(/(redis\.)?call\('TIME'\)/g, clock)}`;
  return (nowMs, keys, args = []) => redis().eval(clocked, keys.length, ...keys, ...args, nowMs);
}
