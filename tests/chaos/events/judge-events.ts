import type { AuditAction } from '../../../src/audit/audit-entry.ts';
import { auditIdOf } from '../../../src/audit/audit-entry.ts';
import { TYPES_OF_ACTIONS } from '../../../src/events/types-of-actions.ts';
import type { RecordsDatabase } from '../../../src/storage/postgres/records-database.ts';
import { makeUsageEvents, usageInEvents, usageOverTime } from '../../events/support/usage-oracle.ts';
import { until } from '../../support/until.ts';
import type { AcknowledgedChange } from './changes-of-keys.ts';
import type { ChaosReceiver, ReceivedEvent } from './chaos-receiver.ts';

/** What took part in the events of a round. */
export interface EventsRound {
  readonly db: RecordsDatabase;
  readonly receiver: ChaosReceiver;
  readonly acknowledged: readonly AcknowledgedChange[];
  readonly report: (line: string) => void;
}

/** Until the lease of a replica that was killed has ended, and what waits is sent. Milliseconds. */
const DELIVERED_MS = 90_000;
const SHOWN = 5;

/** What was promised of events and not held; to be called when the faults are over, the load has stopped, and its usage is in Postgres. */
export async function wrongEvents(round: EventsRound): Promise<readonly string[]> {
  const { db, receiver, acknowledged, report } = round;
  const isAll = async (): Promise<boolean> => {
    await makeUsageEvents(db);
    await retryNow(db);
    return (
      missing(await auditedIds(db), receiver.events).length === 0 && (await wrongUsage(round)).length === 0
    );
  };
  await until(isAll, { timeoutMs: DELIVERED_MS, longestPauseMs: 1000 }).catch(() => {});
  const audited = await auditedIds(db);
  const { events } = receiver;
  const heard = new Set(events.map(({ type, subject }) => `${type} ${subject}`));
  const unheard = acknowledged.filter(({ type, keyId }) => !heard.has(`${type} ${keyId}`));
  const invented = events.filter(({ id }) => id.startsWith('aud_') && !audited.has(id));
  const webhookIds = Map.groupBy(events, ({ id }) => id);
  const twice = [...webhookIds].filter(([, { length }]) => length > 1).map(([id]) => id);
  report(
    `${acknowledged.length} changes acknowledged, ${audited.size} in the audit log; ${events.length} events in ${receiver.accepted.size} deliveries, ${receiver.requests} requests`,
  );
  return [
    ...some(
      unheard.map(({ type, keyId }) => `${type} of ${keyId}`),
      'acknowledged changes without an event',
    ),
    ...some(missing(audited, events), 'changes in the audit log without an event'),
    ...some(
      invented.map(({ id }) => id),
      'events without a change',
    ),
    ...some(twice, 'events under two ids of deliveries'),
    ...(await wrongUsage(round)),
  ];
}

/** The events of usage add up to usage over time, of every key. */
async function wrongUsage({ db, receiver }: EventsRound): Promise<readonly string[]> {
  const heard = usageInEvents(receiver.events.filter(({ type }) => type === 'tollgate.usage.hour'));
  const counted = await usageOverTime(db);
  const keyIds = new Set([...heard.keys(), ...counted.keys()]);
  const [left, right] = [heard, counted].map((sums) => (id: string) => JSON.stringify(sums.get(id)));
  const wrong = [...keyIds].filter((id) => left?.(id) !== right?.(id));
  return some(
    wrong.map((id) => `${id} ${left?.(id)} instead of ${right?.(id)}`),
    'keys whose events of usage differ from their usage',
  );
}

/** The ids of the events of all changes since the webhook was made. */
async function auditedIds(db: RecordsDatabase): Promise<ReadonlySet<string>> {
  const entries = await db
    .selectFrom('audit_log')
    .select(['sequence', 'action'])
    .orderBy('sequence')
    .execute();
  const first = entries.findIndex(({ action }) => action === 'webhook.create');
  return new Set(
    entries
      .slice(first)
      .filter(({ action }) => TYPES_OF_ACTIONS[action as AuditAction] !== null)
      .map(({ sequence }) => auditIdOf(sequence)),
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

function missing(audited: ReadonlySet<string>, events: readonly ReceivedEvent[]): readonly string[] {
  const received = new Set(events.map(({ id }) => id));
  return [...audited].filter((id) => !received.has(id));
}

function some(found: readonly string[], what: string): readonly string[] {
  return found.length === 0 ? [] : [`${found.length} ${what}: ${found.slice(0, SHOWN).join('; ')}`];
}
