import { EVENT_TYPES, type EventType } from './event-types.ts';

/** The JSON schema (draft 2020-12) of all events of a type. */
export function eventSchema(type: EventType): Readonly<Record<string, unknown>> {
  const { when, subject, data } = EVENT_TYPES[type];
  const properties = {
    specversion: { const: '1.0' },
    id: { type: 'string', minLength: 1, description: 'The same event always has the same id.' },
    source: { type: 'string', minLength: 1, description: 'EVENTS_SOURCE of the gateway.' },
    type: { const: type },
    subject: { type: 'string', minLength: 1, description: subject },
    time: { type: 'string', format: 'date-time' },
    datacontenttype: { const: 'application/json' },
    data,
  };
  return {
    description: when,
    type: 'object',
    additionalProperties: false,
    required: Object.keys(properties),
    properties,
  };
}
