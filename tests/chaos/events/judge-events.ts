import type { AuditAction } from '../../../src/audit/audit-entry.ts';
import { eventIdOf } from '../../../src/events/outbox-event.ts';
import { TYPES_OF_ACTIONS } from '../../../src/events/types-of-actions.ts';
import type { RecordsDatabase } from '../../../src/storage/postgres/records-database.ts';
import { makeUsageEvents, usageOverTime } from '../../events/support/usage-oracle.ts';
import { Admin } from '../../support/admin.ts';
import { until } from '../../support/until.ts';
import type { ChaosKey, World } from '../world.ts';
import type { AcknowledgedChange } from './changes-of-keys.ts';
import { acceptedEvents, eventFaults } from './event-faults.ts';

/** What took part in the events of a round. */
export interface EventsRound {
  readonly world: World;
  /** Whose usage is recorded. */
  readonly keys: readonly ChaosKey[];
  readonly acknowledged: readonly AcknowledgedChange[];
  readonly report: (line: string) => void;
}

/** Until the lease of a replica that was killed has ended, and what waits is sent. Milliseconds. */
const DELIVERED_MS = 90_000;

/** What was promised of events and not held; to be called when the faults are over and the load has stopped. */
export async function wrongEvents(round: EventsRound): Promise<readonly string[]> {
  const { world, acknowledged, report } = round;
  const { db, receiver } = world;
  let found: readonly string[] = ['the usage of the keys was not in Postgres in time'];
  const faults = async () =>
    eventFaults({
      ...{ acknowledged, received: receiver.received },
      ...{ audited: await auditedIds(db), usage: await usageOverTime(db) },
    });
  const isAllWell = async (): Promise<boolean> => {
    if (!(await isMoved(round))) return false;
    await makeUsageEvents(db);
    await retryNow(db);
    found = await faults();
    return found.length === 0;
  };
  await until(isAllWell, { timeoutMs: DELIVERED_MS, longestPauseMs: 1000 }).catch(() => {});
  const { received } = receiver;
  report(
    `${acknowledged.length} changes acknowledged, ${(await auditedIds(db)).size} in the audit log; ${acceptedEvents(received).length} events accepted, ${received.length} requests`,
  );
  return found;
}

/** Whether all usage of the keys is in Postgres: none of it comes while its events are judged. */
async function isMoved({ world: { db, replicas }, keys }: EventsRound): Promise<boolean> {
  const admin = new Admin(replicas[0]?.url ?? '');
  const moved = await usageOverTime(db);
  const counts = await Promise.all(
    keys.map(async ({ id }) => [id, (await admin.detail(id)).usage.totalRequests] as const),
  );
  return counts.every(([id, requests]) => moved.get(id)?.requests === requests);
}

/** The ids of the events of all changes since the webhook was made. */
async function auditedIds(db: RecordsDatabase): Promise<ReadonlySet<string>> {
  const entries = await db
    .selectFrom('audit_log')
    .select(['sequence', 'action', 'hash'])
    .orderBy('sequence')
    .execute();
  const first = entries.findIndex(({ action }) => action === 'webhook.create');
  return new Set(
    entries
      .slice(first)
      .filter(({ action }) => TYPES_OF_ACTIONS[action as AuditAction] !== null)
      .map(({ sequence, hash }) => eventIdOf(sequence, hash)),
  );
}

/** In place of hours of waiting: what failed twice is tried again minutes later. */
async function retryNow(db: RecordsDatabase): Promise<void> {
  await db
    .updateTable('webhook_deliveries')
    .set({ next_attempt_at: new Date() })
    .where('status', '=', 'pending')
    .where('next_attempt_at', '>', new Date(Date.now() + 1000))
    .execute();
}
