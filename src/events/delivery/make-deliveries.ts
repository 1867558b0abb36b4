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

/** The length from which a batch takes no further event: four batches of each webhook may be in memory at a time. Characters. */
const FULL_CHARACTERS = 500_000;

/** An event, and its text. */
interface Written {
  readonly event: OutboxEvent;
  readonly text: string;
}

/**
 * The deliveries of the events that a webhook subscribes to: one for each event, or one for many that may be sent as a batch, of about
 * half a megabyte at most.
 */
export function makeDeliveries(
  webhook: Webhook,
  events: readonly OutboxEvent[],
  making: DeliveryMaking,
): readonly NewDelivery[] {
  const heard = events
    .filter((event) => hears(webhook, event))
    .map((event): Written => ({ event, text: cloudEventText(event, making.source) }));
  const isBatched = ({ event }: Written): boolean => webhook.batch && event.type === BATCHED_TYPE;
  const single = heard.filter((each) => !isBatched(each)).map((each) => [each]);
  return [...single, ...batchesOf(heard.filter(isBatched))].map((each) => deliveryOf(webhook, each, making));
}

function batchesOf(written: readonly Written[]): readonly (readonly Written[])[] {
  const batches: Written[][] = [];
  let characters = FULL_CHARACTERS;
  for (const each of written) {
    if (characters >= FULL_CHARACTERS) {
      batches.push([]);
      characters = 0;
    }
    batches.at(-1)?.push(each);
    characters += each.text.length;
  }
  return batches;
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

/** One delivery of these events, of which there is at least one. */
export function deliveryOf(
  webhook: Webhook,
  written: readonly Written[],
  { makeId, nowMs }: Pick<DeliveryMaking, 'makeId' | 'nowMs'>,
): NewDelivery {
  const events = written.map(({ event }) => event);
  const texts = written.map(({ text }) => text);
  const [first] = events;
  const isBatch = webhook.batch && first?.type === BATCHED_TYPE;
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
