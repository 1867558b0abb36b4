import type { Declare } from '../../declare.ts';
import { declareWebhookChanges } from './change-webhooks.ts';
import { declareDeliveries } from './delivery-commands.ts';
import { declareListen } from './listen-for-events.ts';
import { declareWebhookReads } from './read-webhooks.ts';

export const declareWebhooks: Declare = (webhooks, terminal) => {
  webhooks.description(
    'Webhooks: endpoints that events are sent to. Where a <webhook> is asked for, its id will do, and its description where no other webhook has it.',
  );

  declareWebhookReads(webhooks, terminal);
  declareWebhookChanges(webhooks, terminal);
  declareDeliveries(webhooks, terminal);
  declareListen(webhooks, terminal);
};
