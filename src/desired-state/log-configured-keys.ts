import { logChangedKeys } from '../keys/log-changed-keys.ts';
import type { Logger } from '../platform/logger.ts';
import type { AppliedState } from './desired-state-service.ts';

/** Logs the ids of the keys that applying a configuration of `owner` created, updated and deleted. */
export function logConfiguredKeys(log: Logger, owner: string, { difference, newKeyIds }: AppliedState): void {
  const byAction = Map.groupBy(difference.keys, ({ action }) => action);
  for (const [action, steps] of byAction) {
    const keyIds = steps.flatMap(({ before, id }) => before?.key.id ?? newKeyIds.get(id) ?? []);
    logChangedKeys(log, { action, owner }, keyIds);
  }
}
