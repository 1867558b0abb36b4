import { setTimeout as wait } from 'node:timers/promises';

/** A machine that runs other things as well takes its time. */
export const LONGEST_WAIT_MS = 120_000;

interface UntilOptions {
  readonly timeoutMs?: number;
  /** 20 by default: what takes long is not worth the work of asking more often. */
  readonly longestPauseMs?: number;
}

/**
 * Resolves soon after the claim holds, asking after a millisecond at first and then after twice as long each time. Rejects after
 * `timeoutMs` (`LONGEST_WAIT_MS` by default: how long something may take is no test's business unless it says so) with the claim's own
 * source, so that a test that waits in vain says for what.
 */
export async function until(
  claim: () => boolean | Promise<boolean>,
  { timeoutMs = LONGEST_WAIT_MS, longestPauseMs = 20 }: UntilOptions = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let pauseMs = 1;
  while (!(await claim())) {
    if (performance.now() > deadline) {
      throw new Error(`still not true after ${timeoutMs} ms: ${claim.toString()}`);
    }
    await wait(pauseMs);
    pauseMs = Math.min(2 * pauseMs, longestPauseMs);
  }
}

/** How many looks in a row must find the same value. */
const LOOKS_AT_REST = 20;

/** Looks at a number every few milliseconds until it has not changed for a while, and resolves with it. It must differ from `start` by then. */
export async function untilAtRest(look: () => number, start: number): Promise<number> {
  let last = start;
  let looks = 0;
  const isAtRest = (): boolean => {
    const value = look();
    looks = value === last && value !== start ? looks + 1 : 0;
    last = value;
    return looks >= LOOKS_AT_REST;
  };
  await until(isAtRest, { longestPauseMs: 5 });
  return last;
}
