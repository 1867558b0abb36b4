import { monitorEventLoopDelay } from 'node:perf_hooks';

const ATTEMPTS = 3;

/**
 * Runs a scenario in which a peer acts more often than a timeout of a gateway in this process allows it to pause. If it fails and the
 * process stood still for half of that timeout meanwhile, the peer may have paused for too long: it is run again, three times at most.
 */
export async function unlessStalled(timeoutMs: number, scenario: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const delays = monitorEventLoopDelay({ resolution: 10 });
    delays.enable();
    try {
      return await scenario();
    } catch (error) {
      const longestMs = delays.max / 1e6;
      if (attempt === ATTEMPTS || longestMs < timeoutMs / 2) throw error;
    } finally {
      delays.disable();
    }
  }
}
