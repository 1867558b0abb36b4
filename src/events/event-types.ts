// The room `events`: events of the gateway, delivered to webhooks and a stream.
// In: actions of the audit log, as rows of an outbox that are written with the change itself.
// Out: CloudEvents: signed requests to webhooks with retries, and server-sent events.

import type { Scope } from '../permissions/scopes.ts';

/** A JSON schema of the `data` of an event, or of a part of it. */
type DataSchema = Readonly<Record<string, unknown>>;

/** One type of event. */
export interface EventTypeRow {
  /** What `subject` is. */
  readonly subject: string;
  /** When an event of the type is made. */
  readonly when: string;
  /** The scope that is needed to hear it. */
  readonly scope: Scope;
  readonly data: DataSchema;
}

const TEXT = { type: 'string' };
const TEXT_OR_NULL = { type: ['string', 'null'] };
const COUNT = { type: 'integer', minimum: 0 };
const INSTANT = { type: 'string', format: 'date-time' };
const TEXTS = { type: 'array', items: TEXT };

function dataOf(
  properties: Readonly<Record<string, DataSchema>>,
  optional: readonly string[] = [],
): DataSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', additionalProperties: false, required, properties };
}

/** What the audit log says of the change. */
const CHANGE = {
  title: 'EventChange',
  ...dataOf(
    {
      changes: {
        type: 'object',
        additionalProperties: { type: 'object', required: ['from', 'to'], properties: { from: {}, to: {} } },
        description:
          'The fields that changed, by their names in the API, each with its value before and after.',
      },
      actor: dataOf({ type: TEXT, adminTokenId: TEXT_OR_NULL, name: TEXT }),
      reason: TEXT_OR_NULL,
      auditId: TEXT,
      outcome: {
        ...TEXT,
        description: 'The code of the error with which the change failed. Missing: it was made.',
      },
    },
    ['outcome'],
  ),
};

/** What was used, in sums. */
const USED = {
  ...{ requests: COUNT, successful: COUNT, failed: COUNT, rateLimited: COUNT },
  units: { ...COUNT, description: 'What the allowed requests cost together.' },
  ...{ bytesIn: COUNT, bytesOut: COUNT },
};
/** A key that expires. */
const EXPIRY = dataOf({ expiresAt: INSTANT, name: TEXT, externalId: TEXT_OR_NULL, tags: TEXTS });
const DEGRADATION = dataOf({
  since: { ...INSTANT, description: 'Since when limits were decided without Redis.' },
  mode: { type: 'string', enum: ['local', 'open', 'closed'] },
});

/** The row of a change to a kind of records. */
function changeOf(subject: string, scope: Scope): (when: string) => EventTypeRow {
  return (when) => ({ subject, when, scope, data: CHANGE });
}

const keyChange = changeOf('consumerApiKeyId', 'keys:read');
const planChange = changeOf('rateLimitId', 'keys:read');
const tokenChange = changeOf('adminTokenId', 'audit:read');
const webhookChange = changeOf('webhookId', 'audit:read');

/** All types of events: the one place that declares them. */
export const EVENT_TYPES = {
  'tollgate.key.created': keyChange('A consumer API key was created or imported.'),
  'tollgate.key.updated': keyChange('Fields of a key were changed.'),
  'tollgate.key.deleted': keyChange('A key was deleted.'),
  'tollgate.key.rotated': keyChange('A key was given another secret.'),
  'tollgate.key.rotation_ended': keyChange(
    'A rotation was ended by a request: one of the two secrets of a key stays valid. A grace period that runs out makes no event.',
  ),
  'tollgate.key.handed_over': keyChange('The secret of a key was shown to who opened its hand-over link.'),
  'tollgate.key.expiring': {
    subject: 'consumerApiKeyId',
    when: '7 days and 1 day before a key expires, once each.',
    scope: 'keys:read',
    data: EXPIRY,
  },
  'tollgate.key.expired': {
    subject: 'consumerApiKeyId',
    when: 'A key has expired.',
    scope: 'keys:read',
    data: EXPIRY,
  },
  'tollgate.limit.reset': keyChange('Counters of a key were set to zero.'),
  'tollgate.limit.granted': keyChange('A key was granted additional units.'),
  'tollgate.limit.threshold': {
    subject: 'consumerApiKeyId',
    when: 'A window of at least a minute passes one of EVENTS_THRESHOLDS, by default 80 % and 100 % of its limit.',
    scope: 'keys:read',
    data: dataOf(
      {
        limitId: TEXT,
        threshold: { ...COUNT, description: 'Percent of the limit.' },
        limit: COUNT,
        used: { ...COUNT, description: 'Units counted in the window, without those that were granted.' },
        resetTime: INSTANT,
        customerId: {
          ...TEXT,
          description:
            'Only of a limit per customer; `__other__` for the window that customers beyond the bound share.',
        },
      },
      ['customerId'],
    ),
  },
  'tollgate.plan.created': planChange('A plan was created.'),
  'tollgate.plan.updated': planChange('Fields of a plan were changed.'),
  'tollgate.plan.deleted': planChange('A plan was deleted.'),
  'tollgate.admin_token.created': tokenChange('An admin token was created.'),
  'tollgate.admin_token.updated': tokenChange('Fields of an admin token were changed.'),
  'tollgate.admin_token.deleted': tokenChange('An admin token was deleted.'),
  'tollgate.admin_token.rotated': tokenChange('An admin token was given another secret.'),
  'tollgate.webhook.created': webhookChange('A webhook was created.'),
  'tollgate.webhook.updated': webhookChange('Fields of a webhook were changed.'),
  'tollgate.webhook.deleted': webhookChange('A webhook was deleted.'),
  'tollgate.webhook.rotated': webhookChange('A webhook was given another secret.'),
  'tollgate.webhook.disabled': webhookChange(
    'A webhook was disabled because its endpoint is gone or has failed for 5 days.',
  ),
  'tollgate.config.applied': {
    subject: 'owner of the configuration',
    when: 'A configuration was applied that changed something. Each change has an event as well.',
    scope: 'audit:read',
    data: CHANGE,
  },
  'tollgate.usage.hour': {
    subject: 'externalId of the key, otherwise consumerApiKeyId',
    when: 'An hour is complete, for each key that was used in it, and once more for usage that came later.',
    scope: 'usage:read',
    data: dataOf({
      ...{ consumerApiKeyId: TEXT, from: INSTANT, to: INSTANT },
      ...USED,
      byCustomer: {
        description:
          'The 100 customers with most requests, those with most first, and "__other__" for the rest: their sums are those of the key.',
        type: 'array',
        items: dataOf({ customerId: TEXT, ...USED }),
      },
    }),
  },
  'tollgate.gateway.degraded': {
    subject: 'replicaId',
    when: 'A replica begins to decide limits without Redis.',
    scope: 'audit:read',
    data: DEGRADATION,
  },
  'tollgate.gateway.recovered': {
    subject: 'replicaId',
    when: 'A replica decides limits with Redis again.',
    scope: 'audit:read',
    data: DEGRADATION,
  },
  'tollgate.webhook.test': {
    subject: 'webhookId',
    when: 'An administrator tests a webhook. Only this webhook gets it, whatever its events are.',
    scope: 'webhooks:read',
    data: dataOf({ message: TEXT }),
  },
} as const satisfies Readonly<Record<string, EventTypeRow>>;

export type EventType = keyof typeof EVENT_TYPES;

/** The events that a batch may hold: many at once, each small. */
export const BATCHED_TYPE: EventType = 'tollgate.usage.hour';

/** Only sent to the webhook that is tested. */
export const TEST_TYPE: EventType = 'tollgate.webhook.test';
