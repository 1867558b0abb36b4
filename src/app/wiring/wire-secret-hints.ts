import { fillSecretHints, type HintlessKeys } from '../../keys/secrets/fill-secret-hints.ts';
import type { SecretVault } from '../../keys/secrets/secret-vault.ts';
import { PeriodicTask } from '../../platform/periodic-task.ts';
import type { Platform } from '../../platform/platform.ts';

/** Repeated, because during an upgrade replicas of the previous version go on making keys without a hint. */
const EVERY_MS = 3_600_000;

/** Adds to older keys the hint of their secret. The task is not started. */
export function wireSecretHints(
  keys: HintlessKeys,
  vault: SecretVault,
  { log, random }: Platform,
): { readonly start: () => void; readonly stop: () => Promise<void> } {
  const stopping = new AbortController();
  const fill = async (): Promise<boolean> => {
    try {
      await fillSecretHints(keys, vault, stopping.signal);
      return true;
    } catch (error) {
      log.warn({ err: error }, 'hints of secrets could not be filled in; it is tried again');
      return false;
    }
  };
  const filling = new PeriodicTask(fill, { random, pauseMs: EVERY_MS });
  return {
    start: () => filling.startAtOnce(),
    stop: () => {
      stopping.abort();
      return filling.stop();
    },
  };
}
