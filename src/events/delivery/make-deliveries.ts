import { hears } from '../event-patterns.ts';
import { BATCHED_TYPE, TEST_TYPE } from '../event-types.ts';
import { cloudEventText, type OutboxEvent } from '../outbox-event.ts';
import type { Webhook } from '../webhook.ts';
import type { Delivery, NewDelivery } from './delivery.ts';

/** What deliveries are made with. */
export interface DeliveryMaking {
  readonly makeId: () => string;
  /** `source` of all events. */
  readonly source: string;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** The deliveries of the events that a webhook subscribes to: one for each event, or one for all events that may be sent as a batch. */
export function makeDeliveries(
  webhook: Webhook,
  events: readonly OutboxEvent[],
  making: DeliveryMaking,
): readonly NewDelivery[] {
  const heard = events.filter((event) => hears(webhook, event));
  const isBatched = ({ type }: OutboxEvent): boolean => webhook.batch && type === BATCHED_TYPE;
  const batch = heard.filter(isBatched);
  const single = heard.filter((event) => !isBatched(event));
  const deliveries = single.map((event) => deliveryOf(webhook, [event], making));
  return batch.length === 0 ? deliveries : [...deliveries, deliveryOf(webhook, batch, making)];
}

/**
 * A delivery without those of its events that the webhook, whose subscription may have become narrower since, does not hear any more.
 * Undefined if none is left.
 */
export function heardPart(webhook: Webhook, delivery: Delivery): Delivery | undefined {
  const { eventType: type, tags, eventTags, body } = delivery;
  if (type === TEST_TYPE || hears(webhook, { type, tags })) return delivery;
  if (eventTags === null) return undefined;
  // `deliveryOf` has made the body.
  const events = JSON.parse(body) as readonly object[];
  const heard = events.filter((_, index) => hears(webhook, { type, tags: eventTags[index] ?? [] }));
  return heard.length === 0 ? undefined : { ...delivery, body: JSON.stringify(heard) };
}

function deliveryOf(
  webhook: Webhook,
  events: readonly OutboxEvent[],
  { makeId, source, nowMs }: DeliveryMaking,
): NewDelivery {
  const [first] = events;
  const isBatch = webhook.batch && first?.type === BATCHED_TYPE;
  const texts = events.map((event) => cloudEventText(event, source));
  return {
    id: makeId(),
    webhookId: webhook.id,
    createdAtMs: nowMs,
    eventType: first?.type ?? '',
    eventIds: events.map(({ id }) => id),
    tags: (first?.tags ?? []).filter((tag) => events.every(({ tags }) => tags.includes(tag))),
    eventTags: isBatch ? events.map(({ tags }) => tags) : null,
    isBatch,
    body: isBatch ? `[${texts.join(',')}]` : (texts[0] ?? ''),
  };
}
