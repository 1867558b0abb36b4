import { PeriodicTask } from '../../platform/periodic-task.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';
import type { Stores } from './wire-stores.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Removes old entries of the audit log, now and every hour. Call `startPruning` once the tables exist. */
export function wireAudit(
  { settings, platform, shutdown }: ReplicaContext,
  { records }: Stores,
): { readonly startPruning: () => void } {
  const { clock, log, random } = platform;
  const prune = async (): Promise<boolean> => {
    try {
      const removed = await records.audit.prune(clock.nowMs() - settings.auditRetentionDays * DAY_MS);
      if (removed > 0) log.info({ removed }, 'old entries of the audit log were removed');
      return true;
    } catch (error) {
      log.warn({ err: error }, 'old entries of the audit log could not be removed; it is tried again');
      return false;
    }
  };
  const pruning = new PeriodicTask(prune, { random, pauseMs: HOUR_MS });
  shutdown.add('retention of the audit log', CLOSE_DEADLINE_MS, () => pruning.stop());
  return { startPruning: () => pruning.startAtOnce() };
}
