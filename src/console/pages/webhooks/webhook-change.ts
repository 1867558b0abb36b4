import type { components } from '../../../client/management-api.ts';
import { type Change, useChange } from '../../api/change.ts';
import { reasonHeader } from '../../api/reason-header.ts';

export interface WebhookUpdate {
  readonly body: components['schemas']['UpdateWebhookRequest'];
  /** The webhook is changed only if it still has this entity tag; undefined: in any state. */
  readonly etag?: string | undefined;
  readonly reason: string;
}

/** Changes fields of a webhook. */
export function useWebhookUpdate(webhookId: string): Change<WebhookUpdate, components['schemas']['Webhook']> {
  return useChange(
    (client, { body, etag, reason }: WebhookUpdate) =>
      client.PATCH('/tollgate/webhook/{webhookId}', {
        params: {
          path: { webhookId },
          header: { ...(etag !== undefined && { 'If-Match': etag }), ...reasonHeader(reason) },
        },
        body,
      }),
    ['webhooks', webhookId],
  );
}
