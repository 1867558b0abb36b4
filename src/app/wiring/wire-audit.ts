import { loggedRun, PeriodicTask } from '../../platform/periodic-task.ts';
import { isoSecondsOrNull } from '../../platform/timestamps.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';
import type { Stores } from './wire-stores.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Removes old entries of the audit log, now and every hour, and logs its head, once a day over all replicas. Call `start` once the tables
 * exist.
 */
export function wireAudit(
  { settings, platform, shutdown }: ReplicaContext,
  { records }: Stores,
): { readonly start: () => void } {
  const { clock, log, random } = platform;
  const report = async (): Promise<void> => {
    const head = await records.audit.takeDailyHead(clock.nowMs());
    if (head === undefined) return;
    const { count, hash, atMs } = head;
    log.info({ count, hash, at: isoSecondsOrNull(atMs) }, 'the head of the audit log');
  };
  const upkeep = async (goesOn: () => boolean): Promise<void> => {
    await report();
    const removed = await records.audit.prune(clock.nowMs(), settings.auditRetentionDays * DAY_MS, goesOn);
    if (removed > 0) log.info({ removed }, 'old entries of the audit log were removed');
  };
  const task = new PeriodicTask(
    (goesOn) => loggedRun(() => upkeep(goesOn), log, 'the upkeep of the audit log failed; it is tried again'),
    { random, pauseMs: HOUR_MS },
  );
  shutdown.add('upkeep of the audit log', CLOSE_DEADLINE_MS, () => task.stop());
  return { start: () => task.startAtOnce() };
}
