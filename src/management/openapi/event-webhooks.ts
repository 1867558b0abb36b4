import { eventSchema } from '../../events/event-schema.ts';
import { BATCHED_TYPE, EVENT_TYPES, type EventType } from '../../events/event-types.ts';
import { capitalized, type SchemaComponents } from './schema-components.ts';

/** The requests that webhooks send, one for each type of event: `webhooks` of the document. */
export function eventWebhooks(schemas: SchemaComponents): object {
  const types = Object.keys(EVENT_TYPES) as readonly EventType[];
  return Object.fromEntries(types.map((type) => [type, { post: requestOf(type, schemas) }]));
}

function requestOf(type: EventType, schemas: SchemaComponents): object {
  const name = type.split(/[._]/).map(capitalized).join('');
  const { when, scope } = EVENT_TYPES[type];
  const event = schemas.place(eventSchema(type), name);
  return {
    operationId: `receive${name}`,
    summary: when,
    description: `To hear it, a token needs the scope ${scope}.`,
    tags: ['events'],
    security: [],
    parameters: SIGNATURE,
    requestBody: {
      required: true,
      content: {
        'application/cloudevents+json': { schema: event },
        // To a webhook with `batch: true`.
        ...(type === BATCHED_TYPE && {
          'application/cloudevents-batch+json': { schema: { type: 'array', minItems: 1, items: event } },
        }),
      },
    },
    responses: {
      '2XX': { description: 'The event was received.' },
      410: { description: 'The endpoint is gone: the webhook is disabled.' },
    },
  };
}

/** The headers of Standard Webhooks. */
const SIGNATURE = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => ({
  name,
  in: 'header',
  required: true,
  schema: { type: 'string' },
}));
