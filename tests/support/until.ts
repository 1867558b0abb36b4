import { setTimeout as wait } from 'node:timers/promises';

/**
 * Resolves as soon as the claim holds, asking every few milliseconds. Rejects after `timeoutMs` (60 000 by default: a machine that
 * runs other things as well takes its time, and how long something may take is no test's business unless it says so)
 * with the claim's own source, so that a test that waits in vain says for what.
 */
export async function until(
  claim: () => boolean | Promise<boolean>,
  { timeoutMs = 60_000 }: { readonly timeoutMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await claim())) {
    if (performance.now() > deadline) {
      throw new Error(`still not true after ${timeoutMs} ms: ${claim.toString()}`);
    }
    await wait(5);
  }
}

/** How many looks in a row must find the same value. */
const LOOKS_AT_REST = 20;

/** Looks at a number every few milliseconds until it has not changed for a while, and resolves with it. It must differ from `start` by then. */
export async function untilAtRest(look: () => number, start: number): Promise<number> {
  let last = start;
  let looks = 0;
  await until(() => {
    const value = look();
    looks = value === last && value !== start ? looks + 1 : 0;
    last = value;
    return looks >= LOOKS_AT_REST;
  });
  return last;
}
