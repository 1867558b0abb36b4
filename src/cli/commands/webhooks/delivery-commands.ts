import { type Command, Option } from 'commander';
import type { components } from '../../../client/management-api.ts';
import { bodyOf } from '../../../client/management-client.ts';
import { type PageOptions, paged, pagesOf } from '../../api/pages.ts';
import { audited, managed } from '../../api/session.ts';
import type { Listing } from '../../output/columns.ts';
import type { Terminal } from '../../terminal.ts';
import { webhookIdOf } from './webhook-by-name.ts';

type Delivery = components['schemas']['WebhookDelivery'];

interface DeliveriesOptions extends PageOptions {
  readonly status?: Delivery['status'];
}

const STATUSES: readonly Delivery['status'][] = ['pending', 'succeeded', 'failed', 'cancelled'];

/** Declares the commands about what is sent to a webhook. */
export function declareDeliveries(webhooks: Command, terminal: Terminal): void {
  const list = webhooks
    .command('deliveries')
    .summary('List what is sent to a webhook')
    .description(
      'Lists the deliveries of a webhook, newest first, at most 100 on a page. JSON has all attempts and the bodies.',
    )
    .argument('<webhook>', 'id or description')
    .addOption(new Option('--status <status>', 'only deliveries in this state').choices(STATUSES))
    .addHelpText('after', '\nExample:\n  tollgate webhooks deliveries Chat --status failed --all');
  managed<DeliveriesOptions>(paged(list), terminal, async ({ client, output }, [webhook = ''], options) => {
    const path = { webhookId: await webhookIdOf(client, webhook) };
    const { status } = options;
    const pages = pagesOf(options, output, async (page) => {
      const query = { ...page, ...(status !== undefined && { status }) };
      const { deliveries, nextCursor } = await bodyOf(
        client.GET('/tollgate/webhook/{webhookId}/deliveries', { params: { path, query } }),
      );
      return { items: deliveries, nextCursor };
    });
    await output.list(DELIVERIES, pages);
  });

  const test = webhooks
    .command('test')
    .summary('Send a test event to a webhook')
    .description('Sends an event of the type tollgate.webhook.test that no other webhook gets.')
    .argument('<webhook>', 'id or description')
    .addHelpText('after', '\nExample:\n  tollgate webhooks test Chat --reason "the receiver was moved"');
  managed(audited(test), terminal, async ({ client, output }, [webhook = '']) => {
    const path = { webhookId: await webhookIdOf(client, webhook) };
    const call = client.POST('/tollgate/webhook/{webhookId}/test', { params: { path } });
    await output.item(SENDING, await bodyOf(call));
  });

  const resend = webhooks
    .command('resend')
    .summary('Send a delivery again')
    .description('Sends a delivery again, under its id.')
    .argument('<webhook>', 'id or description')
    .argument('<delivery>', 'id')
    .addHelpText('after', '\nExample:\n  tollgate webhooks resend Chat dlv_01KGH3V6ZQ5T8M2N4P6R8S0T2V');
  managed(audited(resend), terminal, async ({ client, output }, [webhook = '', deliveryId = '']) => {
    const params = { path: { webhookId: await webhookIdOf(client, webhook), deliveryId } };
    const call = client.POST('/tollgate/webhook/{webhookId}/deliveries/{deliveryId}/resend', { params });
    await output.item(SENDING, await bodyOf(call));
  });
}

const DELIVERIES: Listing<Delivery> = {
  columns: [
    { name: 'id', toCell: ({ deliveryId }) => deliveryId },
    { name: 'type', toCell: ({ eventType }) => eventType },
    { name: 'status', toCell: ({ status }) => status },
    { name: 'response', toCell: ({ responseStatus, attempts }) => responseStatus ?? attempts.at(-1)?.fault },
    { name: 'ms', toCell: ({ durationMs }) => durationMs },
    { name: 'attempts', toCell: ({ attempts }) => attempts.length },
    { name: 'next attempt', toCell: ({ nextAttemptAt }) => nextAttemptAt },
    { name: 'created', toCell: ({ createdAt }) => createdAt },
  ],
  idOf: ({ deliveryId }) => deliveryId,
};

const SENDING: Listing<{
  readonly webhookId: string;
  readonly deliveryId: string;
  readonly message: string;
}> = {
  columns: [
    { name: 'id', toCell: ({ deliveryId }) => deliveryId },
    { name: 'webhook', toCell: ({ webhookId }) => webhookId },
    { name: 'message', toCell: ({ message }) => message },
  ],
  idOf: ({ deliveryId }) => deliveryId,
};
