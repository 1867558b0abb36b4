import { type UsageEvent, type UsageSum, wrongUsage } from '../../events/support/usage-oracle.ts';
import type { AcknowledgedChange } from './changes-of-keys.ts';

/** A request that a receiver of webhooks got whole. */
export interface ReceivedRequest {
  readonly webhookId: string;
  readonly body: string;
  readonly isAccepted: boolean;
}

/** All that was promised and seen of events. */
export interface EventsRecord {
  readonly acknowledged: readonly AcknowledgedChange[];
  /** The ids of the events of all changes in the audit log since the webhook was made. */
  readonly audited: ReadonlySet<string>;
  readonly received: readonly ReceivedRequest[];
  /** The usage over time of each key. */
  readonly usage: ReadonlyMap<string, UsageSum>;
}

interface ReceivedEvent {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly data: UsageEvent['data'];
}

const SHOWN = 5;

/** What was promised of events and does not hold, a sentence each. */
export function eventFaults({ acknowledged, audited, received, usage }: EventsRecord): readonly string[] {
  const events = acceptedEvents(received);
  const ids = new Set(events.map(({ id }) => id));
  const heard = new Set(events.map(({ type, subject }) => `${type} ${subject}`));
  const unheard = acknowledged.filter(({ type, keyId }) => !heard.has(`${type} ${keyId}`));
  const ofUsage = events.filter(({ type }) => type === 'tollgate.usage.hour');
  return [
    ...some(
      unheard.map(({ type, keyId }) => `${type} of ${keyId}`),
      'acknowledged changes without an event',
    ),
    ...some(
      [...audited].filter((id) => !ids.has(id)),
      'changes in the audit log without an event',
    ),
    ...some(
      [...ids].filter((id) => id.startsWith('aud_') && !audited.has(id)),
      'events without a change',
    ),
    ...some(
      repeated(events, ({ id }) => id),
      'events that are in several deliveries, or in one several times',
    ),
    ...some(
      repeated(distinct(received), ({ webhookId }) => webhookId),
      'deliveries whose attempts have different bodies',
    ),
    ...some(wrongUsage(ofUsage, usage), 'keys whose events of usage differ from their usage'),
  ];
}

/** The events of the deliveries that were accepted, each delivery once: its `webhook-id` says that it was seen. */
export function acceptedEvents(received: readonly ReceivedRequest[]): readonly ReceivedEvent[] {
  const accepted = received.filter(({ isAccepted }) => isAccepted).toReversed();
  const first = new Map(accepted.map(({ webhookId, body }) => [webhookId, body]));
  return [...first.values()].flatMap((body) => JSON.parse(body));
}

/** The requests without those that repeat another in id and body. */
function distinct(received: readonly ReceivedRequest[]): readonly ReceivedRequest[] {
  return [...new Map(received.map((request) => [`${request.webhookId} ${request.body}`, request])).values()];
}

function repeated<Item>(items: readonly Item[], idOf: (item: Item) => string): readonly string[] {
  return [...Map.groupBy(items, idOf)].filter(([, { length }]) => length > 1).map(([id]) => id);
}

function some(found: readonly string[], what: string): readonly string[] {
  return found.length === 0 ? [] : [`${found.length} ${what}: ${found.slice(0, SHOWN).join('; ')}`];
}
