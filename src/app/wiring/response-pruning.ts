import type { IdempotentRequests } from '../../idempotency/idempotent-requests.ts';
import { PeriodicTask } from '../../platform/periodic-task.ts';
import type { Platform } from '../../platform/platform.ts';

const EVERY_MS = 600_000;
const LONGEST_PAUSE_MS = 3_600_000;

/** Removes lapsed responses to idempotent requests from time to time; not started. */
export function responsePruning(requests: IdempotentRequests, { log, random }: Platform): PeriodicTask {
  const prune = async (): Promise<boolean> => {
    try {
      await requests.prune();
      return true;
    } catch (error) {
      log.warn({ err: error }, 'lapsed responses could not be removed; it is tried again');
      return false;
    }
  };
  return new PeriodicTask(prune, { random, pauseMs: EVERY_MS, longestPauseMs: LONGEST_PAUSE_MS });
}
