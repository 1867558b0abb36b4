import { isWebhookId } from '../../events/webhook.ts';
import { bodySchema, editSchema } from '../../http/body-schema.ts';
import { isoSecondsOrNull } from '../../platform/timestamps.ts';
import { type Endpoint, Reply } from '../endpoint.ts';
import { ROTATE_BODY, type RotateBody } from '../keys/rotate-key.ts';
import { pageSchema, readListPage } from '../list-page.ts';
import { COUNTED_PAGE_QUERY } from '../page-query.ts';
import { INSTANT, objectOf, orNull, TEXT } from '../response-schemas.ts';
import {
  presentWebhook,
  readWebhookFields,
  WEBHOOK_FIELDS,
  WEBHOOK_ITEM,
  type WrittenWebhookFields,
} from './webhook-fields.ts';

const SECRET = { ...TEXT, description: 'Shown here and never again.', examples: ['whsec_…'] };

interface CreateWebhookBody extends WrittenWebhookFields {
  readonly url: string;
  readonly events: readonly string[];
}
const CREATE_WEBHOOK_BODY = bodySchema(['url', 'events'], WEBHOOK_FIELDS);

/** Creates a webhook. Only this response shows its secret. */
export const createWebhook: Endpoint<CreateWebhookBody> = {
  method: 'post',
  path: '/tollgate/webhook/create',
  operationId: 'createWebhook',
  summary: 'Create a webhook',
  scope: 'webhooks:write',
  body: CREATE_WEBHOOK_BODY,
  status: 201,
  tagged: true,
  response: { title: 'CreatedWebhook', allOf: [WEBHOOK_ITEM, objectOf({ secret: SECRET })] },
  errors: ['webhook_url_not_allowed'],
  check({ body }, { webhooks }) {
    return webhooks.checkUrl(body.url);
  },
  async handle({ body, principal, change }, { webhooks, clock, log }) {
    const { url, events } = body;
    const defaults = {
      onlyTags: [],
      externalId: null,
      description: '',
      enabled: true,
      batch: false,
      headers: {},
    };
    const fields = { url, events, ...defaults, ...readWebhookFields(body) };
    const { webhook, secret } = await webhooks.create(fields, principal, change);
    log.info({ event: 'webhook_created', webhookId: webhook.id }, 'a webhook was created');
    const shown = { ...presentWebhook(webhook, clock.nowMs()), secret };
    return Reply.created(`/tollgate/webhook/${webhook.id}`, webhook, shown);
  },
};

/** Lists the webhooks, newest first, without their secrets. */
export const listWebhooks: Endpoint = {
  method: 'get',
  path: '/tollgate/webhook',
  operationId: 'listWebhooks',
  summary: 'List webhooks, newest first',
  scope: 'webhooks:read',
  query: COUNTED_PAGE_QUERY,
  status: 200,
  response: pageSchema('webhooks', WEBHOOK_ITEM),
  errors: ['invalid_cursor'],
  async handle({ query, principal }, { webhooks, clock }) {
    const { items, about } = await readListPage(query, {
      list: (page) => webhooks.list(page, principal),
      count: () => webhooks.count(principal),
      isId: isWebhookId,
      idOf: ({ id }) => id,
    });
    return { webhooks: items.map((webhook) => presentWebhook(webhook, clock.nowMs())), ...about };
  },
};

/** Shows one webhook, without its secret. */
export const showWebhook: Endpoint = {
  method: 'get',
  path: '/tollgate/webhook/{webhookId}',
  operationId: 'showWebhook',
  summary: 'Show a webhook',
  scope: 'webhooks:read',
  status: 200,
  tagged: true,
  response: WEBHOOK_ITEM,
  errors: ['webhook_not_found'],
  async handle({ id, principal }, { webhooks, clock }) {
    const webhook = await webhooks.get(id, principal);
    return Reply.tagged(webhook, presentWebhook(webhook, clock.nowMs()));
  },
};

const UPDATE_WEBHOOK_BODY = editSchema(WEBHOOK_FIELDS);

/** Changes the fields of a webhook that the body names. */
export const updateWebhook: Endpoint<WrittenWebhookFields> = {
  method: 'patch',
  path: '/tollgate/webhook/{webhookId}',
  operationId: 'updateWebhook',
  summary: 'Change a webhook: everything but its secret',
  scope: 'webhooks:write',
  body: UPDATE_WEBHOOK_BODY,
  status: 200,
  tagged: true,
  conditional: true,
  response: WEBHOOK_ITEM,
  errors: ['webhook_not_found', 'webhook_url_not_allowed'],
  async handle({ id, body, principal, change }, { webhooks, clock, log }) {
    const changes = readWebhookFields(body);
    const webhook = await webhooks.update(id, { changes, principal }, change);
    log.info({ event: 'webhook_updated', webhookId: id }, 'a webhook was changed');
    return Reply.tagged(webhook, presentWebhook(webhook, clock.nowMs()));
  },
};

/** Deletes a webhook with its deliveries: nothing more is sent. */
export const deleteWebhook: Endpoint = {
  method: 'delete',
  path: '/tollgate/webhook/{webhookId}',
  operationId: 'deleteWebhook',
  summary: 'Delete a webhook',
  scope: 'webhooks:write',
  status: 200,
  conditional: true,
  response: objectOf({ webhookId: TEXT, message: TEXT }),
  errors: ['webhook_not_found'],
  async handle({ id, change }, { webhooks, log }) {
    await webhooks.remove(id, change);
    log.info({ event: 'webhook_deleted', webhookId: id }, 'a webhook was deleted');
    return { webhookId: id, message: 'The webhook was deleted.' };
  },
};

/** Gives a webhook a new secret. The previous one signs as well for a grace period. */
export const rotateWebhook: Endpoint<RotateBody> = {
  method: 'post',
  path: '/tollgate/webhook/{webhookId}/rotate',
  operationId: 'rotateWebhook',
  summary: 'Give a webhook another secret',
  scope: 'webhooks:write',
  body: ROTATE_BODY,
  status: 200,
  tagged: true,
  conditional: true,
  response: objectOf({
    webhookId: TEXT,
    secret: SECRET,
    previousValidUntil: {
      ...orNull(INSTANT),
      description: 'Null: the secret before signs no more from now on.',
    },
    message: TEXT,
  }),
  errors: ['webhook_not_found', 'rotation_in_progress'],
  async handle({ id, body, principal, change }, { webhooks, log }) {
    const graceMs = body.graceSeconds * 1000;
    const { webhook, secret } = await webhooks.rotate(id, { graceMs, principal }, change);
    log.info({ event: 'webhook_rotated', webhookId: id }, 'a webhook was given another secret');
    return Reply.tagged(webhook, {
      webhookId: id,
      secret,
      previousValidUntil: isoSecondsOrNull(webhook.previousValidUntilMs),
      message: 'The webhook has another secret.',
    });
  },
};
