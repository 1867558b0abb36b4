import { bodyOf, type ManagementClient } from '../../../client/management-client.ts';
import { oneByName } from '../../api/one-by-name.ts';

const WEBHOOK_ID = /^whk_[0-9A-HJKMNP-TV-Z]{26}$/;

/** The id of the webhook with this id or description. An id is not looked up. */
export async function webhookIdOf(client: ManagementClient, idOrDescription: string): Promise<string> {
  return WEBHOOK_ID.test(idOrDescription)
    ? idOrDescription
    : (await namedWebhook(client, idOrDescription)).id;
}

/** The webhook with this id or description. */
export function namedWebhook(client: ManagementClient, idOrDescription: string) {
  return oneByName('webhook', idOrDescription, async (query) => {
    const { webhooks, nextCursor } = await bodyOf(client.GET('/tollgate/webhook', { params: { query } }));
    const items = webhooks.map((each) => ({ ...each, id: each.webhookId, name: each.description }));
    return { items, nextCursor };
  });
}
