import { setTimeout as wait } from 'node:timers/promises';

/**
 * Resolves as soon as the claim holds, asking every few milliseconds. Rejects after `timeoutMs` (20 000 unless told: a machine that
 * runs other things as well takes its time, and how long something may take is no test's business unless it says so)
 * with the claim's own source, so that a test that waits in vain says for what.
 */
export async function until(
  claim: () => boolean | Promise<boolean>,
  { timeoutMs = 20_000 }: { readonly timeoutMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await claim())) {
    if (performance.now() > deadline) {
      throw new Error(`still not true after ${timeoutMs} ms: ${claim.toString()}`);
    }
    await wait(5);
  }
}
