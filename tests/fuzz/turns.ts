import { setImmediate } from 'node:timers/promises';

/** Resolves after so many turns of the event loop; 0 = at once, in the same turn. */
export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await setImmediate();
}

/**
 * Resolves between two polls of the event loop: before anything can run that waited for the sockets to be read, they are read once. What
 * is sent now lies in the other side's socket when it polls.
 */
export function beforePoll(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** Resolves with whether the claim held within the time, asking in each turn at first and less often later. */
export async function holdsWithin(ms: number, claim: () => boolean): Promise<boolean> {
  const deadline = performance.now() + ms;
  for (let i = 0; !claim(); i += 1) {
    if (performance.now() > deadline) return false;
    await (i < BUSY_TURNS ? setImmediate() : new Promise((resolve) => setTimeout(resolve, PAUSE_MS)));
  }
  return true;
}

const BUSY_TURNS = 50;
const PAUSE_MS = 2;
