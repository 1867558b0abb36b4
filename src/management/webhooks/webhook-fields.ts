import { InvalidBody } from '../../errors.ts';
import {
  type Attempt,
  DELIVERY_FAULTS,
  DELIVERY_STATUSES,
  type Delivery,
} from '../../events/delivery/delivery.ts';
import { HEARD_TYPES } from '../../events/event-patterns.ts';
import type { Webhook } from '../../events/webhook.ts';
import type { WebhookFields } from '../../events/webhook-service.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { isoSeconds, isoSecondsOrNull } from '../../platform/timestamps.ts';
import type { ResponseSchema } from '../endpoint.ts';
import { distinct, KEY_FIELDS } from '../keys/key-fields.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';

const MASK = '***';
const MOST_HEADERS = 10;
/** A token of RFC 9110 section 5.6.2. */
const HEADER_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$";
/** Visible characters with spaces between: no line break can end the header. */
const HEADER_VALUE = '^[\\x21-\\x7e](?:[\\x20-\\x7e]{0,1022}[\\x21-\\x7e])?$';
const HEADER_RULE = `at most ${MOST_HEADERS} headers by name, each a string of 1 to 1024 printable ASCII characters`;

/** The fields that a new webhook may have and that an edit may change. */
export const WEBHOOK_FIELDS = {
  url: {
    description:
      'must be an https URL of 1 to 2048 printable ASCII characters that leads to a public address',
    type: 'string',
    pattern: '^[\\x21-\\x7e]{1,2048}$',
  },
  events: {
    description: 'must be a list of 1 to 50 event types, each also as its beginning and *',
    type: 'array',
    minItems: 1,
    maxItems: 50,
    items: {
      description: `must be an event type, such as ${HEARD_TYPES[0]}, or the beginning of one and *`,
      type: 'string',
      pattern: '^[a-z_.]{0,63}(?:[a-z_.]|\\*)$',
    },
  },
  onlyTags: {
    ...KEY_FIELDS.tags,
    description: `${KEY_FIELDS.tags.description}: only events about records with all of them are sent`,
  },
  externalId: KEY_FIELDS.externalId,
  description: {
    description: 'must be a string of at most 255 characters',
    type: 'string',
    maxLength: 255,
    format: 'stored-text',
  },
  enabled: { description: 'must be true or false: whether events are sent', type: 'boolean' },
  batch: {
    description: 'must be true or false: whether up to 500 events of usage are sent in one request',
    type: 'boolean',
  },
  headers: {
    description: `must be an object of ${HEADER_RULE}`,
    type: ['object', 'null'],
    maxProperties: MOST_HEADERS,
    propertyNames: { type: 'string', pattern: HEADER_NAME },
    additionalProperties: {
      description: 'must be a string of 1 to 1024 printable ASCII characters',
      type: 'string',
      pattern: HEADER_VALUE,
    },
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** `WEBHOOK_FIELDS` as they are in a body. */
export interface WrittenWebhookFields {
  readonly url?: string;
  readonly events?: readonly string[];
  readonly onlyTags?: readonly string[] | null;
  readonly externalId?: string | null;
  readonly description?: string;
  readonly enabled?: boolean;
  readonly batch?: boolean;
  readonly headers?: Readonly<Record<string, string>> | null;
}

/** Headers that the gateway sets, or that decide where a message ends or goes. */
const OWN_HEADERS = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
]);

/** The fields in the body. Throws `InvalidBody`. */
export function readWebhookFields(body: WrittenWebhookFields): Partial<WebhookFields> {
  const { url, events, onlyTags, externalId, description, enabled, batch, headers } = body;
  return definedFields({
    ...{ url, events: distinct(events), onlyTags: distinct(onlyTags), externalId },
    ...{ description, enabled, batch },
    headers: headers === undefined ? undefined : readHeaders(headers ?? {}),
  });
}

function readHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const read = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    const isOwn = OWN_HEADERS.has(lower) || lower.startsWith('webhook-');
    if (isOwn || read.has(lower))
      throw new InvalidBody([
        { field: `headers.${name}`, message: isOwn ? 'is set by the gateway' : 'is given twice' },
      ]);
    read.set(lower, value);
  }
  return Object.fromEntries(read);
}

/** A webhook as the list and the detail show it. */
export const WEBHOOK_ITEM = named(
  'Webhook',
  objectOf({
    webhookId: TEXT,
    url: TEXT,
    events: listOf(TEXT),
    onlyTags: listOf(TEXT),
    externalId: orNull(TEXT),
    description: TEXT,
    enabled: { type: 'boolean' },
    batch: { type: 'boolean' },
    headers: { type: 'object', additionalProperties: TEXT, description: 'The values are never shown.' },
    secretHint: { ...TEXT, examples: ['whsec_Ab3d…9xYz'] },
    rotation: {
      ...orNull(named('WebhookRotation', objectOf({ previousValidUntil: INSTANT }))),
      description: 'While the secret before this one signs as well.',
    },
    disabledReason: {
      ...orNull({ type: 'string', enum: ['gone', 'failing'] }),
      description: 'Why the gateway disabled it: the endpoint responded with 410, or failed for 5 days.',
    },
    failingSince: orNull(INSTANT),
    managedBy: { ...orNull(TEXT), description: 'The owner of the configuration that manages it.' },
    createdAt: INSTANT,
    lastUpdated: INSTANT,
  }),
);

export function presentWebhook(webhook: Webhook, nowMs: number): object {
  const { previousValidUntilMs: untilMs } = webhook;
  return {
    webhookId: webhook.id,
    url: webhook.url,
    events: webhook.events,
    onlyTags: webhook.onlyTags,
    externalId: webhook.externalId,
    description: webhook.description,
    enabled: webhook.enabled,
    batch: webhook.batch,
    headers: Object.fromEntries(webhook.headerNames.map((name) => [name, MASK])),
    secretHint: webhook.secretHint,
    rotation: untilMs === null || untilMs <= nowMs ? null : { previousValidUntil: isoSeconds(untilMs) },
    disabledReason: webhook.disabledReason,
    failingSince: isoSecondsOrNull(webhook.failingSinceMs),
    managedBy: webhook.managedBy,
    createdAt: isoSeconds(webhook.createdAtMs),
    lastUpdated: isoSeconds(webhook.updatedAtMs),
  };
}

const ATTEMPT: ResponseSchema = named(
  'DeliveryAttempt',
  objectOf({
    at: INSTANT,
    responseStatus: orNull(COUNT),
    durationMs: COUNT,
    fault: {
      ...orNull({
        type: 'string',
        enum: DELIVERY_FAULTS,
      }),
      description: 'Why there was no response.',
    },
  }),
);

/** A delivery as the list shows it. */
export const DELIVERY_ITEM = named(
  'WebhookDelivery',
  objectOf({
    deliveryId: { ...TEXT, description: 'The webhook-id of all attempts.' },
    eventType: TEXT,
    eventIds: listOf(TEXT),
    createdAt: INSTANT,
    status: { type: 'string', enum: DELIVERY_STATUSES },
    attempts: { ...listOf(ATTEMPT), description: 'The last 20, oldest first.' },
    responseStatus: { ...orNull(COUNT), description: 'Of the last attempt.' },
    durationMs: { ...orNull(COUNT), description: 'Of the last attempt.' },
    nextAttemptAt: orNull(INSTANT),
    body: { ...TEXT, description: 'What is sent: a CloudEvent, or a list of them, as JSON.' },
  }),
);

export function presentDelivery(delivery: Delivery): object {
  const last = delivery.attempts.at(-1);
  return {
    deliveryId: delivery.id,
    eventType: delivery.eventType,
    eventIds: delivery.eventIds,
    createdAt: isoSeconds(delivery.createdAtMs),
    status: delivery.status,
    attempts: delivery.attempts.map(presentAttempt),
    responseStatus: last?.responseStatus ?? null,
    durationMs: last?.durationMs ?? null,
    nextAttemptAt: isoSecondsOrNull(delivery.nextAttemptAtMs),
    body: delivery.body,
  };
}

function presentAttempt({ atMs, responseStatus, durationMs, fault }: Attempt): object {
  return { at: isoSeconds(atMs), responseStatus, durationMs, fault };
}
