import { DELIVERY_STATUSES, isDeliveryId } from '../../events/delivery/delivery.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import type { Endpoint } from '../endpoint.ts';
import { pageSchema, readIdCursor } from '../list-page.ts';
import { writeCursor } from '../page-cursor.ts';
import { COUNTED_PAGE_QUERY, isCounted, readPage } from '../page-query.ts';
import { queryParameters } from '../query-parameters.ts';
import { objectOf, TEXT } from '../response-schemas.ts';
import { DELIVERY_ITEM, presentDelivery } from './webhook-fields.ts';

/** Deliveries on a page: their bodies are large. */
const LONGEST_PAGE = 100;

const DELIVERY_QUERY = {
  status: {
    description: `must be one of ${DELIVERY_STATUSES.join(', ')}`,
    type: 'string',
    enum: DELIVERY_STATUSES,
  },
  ...COUNTED_PAGE_QUERY,
  limit: {
    ...COUNTED_PAGE_QUERY.limit,
    description: `must be an integer from 1 to 1000, of which a page has at most ${LONGEST_PAGE}`,
    default: LONGEST_PAGE,
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { readWord } = queryParameters(DELIVERY_QUERY);

/** Lists the deliveries of a webhook that the principal may read, newest first, with their attempts and bodies. */
export const listDeliveries: Endpoint = {
  method: 'get',
  path: '/tollgate/webhook/{webhookId}/deliveries',
  operationId: 'listWebhookDeliveries',
  summary: 'List the deliveries of a webhook, newest first, at most 100 on a page',
  scope: 'webhooks:read',
  query: DELIVERY_QUERY,
  status: 200,
  response: pageSchema('deliveries', DELIVERY_ITEM),
  errors: ['webhook_not_found', 'invalid_cursor'],
  async handle({ id, query, principal }, { webhooks }) {
    const { limit, cursor } = readPage(query);
    // Before the list is read: nothing would handle a rejection of that if this throws.
    const isWithTotal = isCounted(query);
    const status = readWord(query, 'status', DELIVERY_STATUSES);
    const filter = { id, status };
    const page = {
      limit: Math.min(limit, LONGEST_PAGE),
      status,
      afterId: cursor === undefined ? undefined : readIdCursor(cursor, filter, isDeliveryId),
    };
    const [{ deliveries, nextAfterId }, total] = await Promise.all([
      webhooks.deliveries(id, page, principal),
      isWithTotal ? webhooks.countDeliveries(id, status, principal) : undefined,
    ]);
    return {
      deliveries: deliveries.map(presentDelivery),
      nextCursor: nextAfterId && writeCursor([nextAfterId], filter),
      total,
    };
  },
};

/** Sends an event to a webhook that no other webhook gets. */
export const testWebhook: Endpoint = {
  method: 'post',
  path: '/tollgate/webhook/{webhookId}/test',
  operationId: 'testWebhook',
  summary: 'Send an event of the type tollgate.webhook.test to a webhook',
  scope: 'webhooks:write',
  status: 200,
  response: objectOf({ webhookId: TEXT, deliveryId: TEXT, message: TEXT }),
  errors: ['webhook_not_found', 'webhook_disabled'],
  async handle({ id, principal, change }, { webhooks }) {
    const deliveryId = await webhooks.test(id, principal, change);
    return { webhookId: id, deliveryId, message: 'A test event is being sent.' };
  },
};

/** Sends a delivery again, under its id. */
export const resendDelivery: Endpoint = {
  method: 'post',
  path: '/tollgate/webhook/{webhookId}/deliveries/{deliveryId}/resend',
  operationId: 'resendWebhookDelivery',
  summary: 'Send a delivery of a webhook again',
  scope: 'webhooks:write',
  status: 200,
  response: objectOf({ webhookId: TEXT, deliveryId: TEXT, message: TEXT }),
  errors: ['webhook_not_found', 'delivery_not_found', 'webhook_disabled', 'not_subscribed'],
  async handle({ id, subId: deliveryId, principal, change }, { webhooks }) {
    await webhooks.resend({ webhookId: id, deliveryId }, principal, change);
    return { webhookId: id, deliveryId, message: 'The delivery is being sent again.' };
  },
};
