import type { Command } from 'commander';
import { bodyOf } from '../../../client/management-client.ts';
import { type PageOptions, paged, pagesOf } from '../../api/pages.ts';
import { managed } from '../../api/session.ts';
import type { Terminal } from '../../terminal.ts';
import { webhookIdOf } from './webhook-by-name.ts';
import { WEBHOOKS } from './webhook-listing.ts';

/** Declares the commands that show webhooks. */
export function declareWebhookReads(webhooks: Command, terminal: Terminal): void {
  const list = webhooks
    .command('list')
    .summary('List webhooks')
    .description('Lists webhooks, newest first.')
    .addHelpText('after', '\nExample:\n  tollgate webhooks list --all -o csv');
  managed<PageOptions>(paged(list), terminal, async ({ client, output }, _words, options) => {
    const pages = pagesOf(options, output, async (query) => {
      const page = await bodyOf(client.GET('/tollgate/webhook', { params: { query } }));
      return { items: page.webhooks, nextCursor: page.nextCursor };
    });
    await output.list(WEBHOOKS, pages);
  });

  const show = webhooks
    .command('show')
    .alias('get')
    .summary('Show a webhook')
    .description('Shows a webhook, without its secret and the values of its headers.')
    .argument('<webhook>', 'id or description')
    .addHelpText('after', '\nExample:\n  tollgate webhooks show "Billing"');
  managed(show, terminal, async ({ client, output }, [webhook = '']) => {
    const path = { webhookId: await webhookIdOf(client, webhook) };
    const shown = await bodyOf(client.GET('/tollgate/webhook/{webhookId}', { params: { path } }));
    await output.item(WEBHOOKS, shown);
  });
}
