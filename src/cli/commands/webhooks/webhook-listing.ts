import type { components } from '../../../client/management-api.ts';
import type { Listing } from '../../output/columns.ts';

type Webhook = components['schemas']['Webhook'];

export const WEBHOOKS: Listing<Webhook> = {
  columns: [
    { name: 'id', toCell: ({ webhookId }) => webhookId },
    { name: 'description', toCell: ({ description }) => description },
    { name: 'status', toCell: statusOf },
    { name: 'url', toCell: ({ url }) => url },
    { name: 'events', toCell: ({ events }) => events.join(' ') },
    { name: 'only tags', toCell: ({ onlyTags }) => onlyTags.join(' ') },
    { name: 'batch', toCell: ({ batch }) => batch },
    { name: 'headers', toCell: ({ headers }) => Object.keys(headers).join(' ') },
    { name: 'hint', toCell: ({ secretHint }) => secretHint },
    { name: 'created', toCell: ({ createdAt }) => createdAt },
  ],
  idOf: ({ webhookId }) => webhookId,
};

function statusOf({ enabled, disabledReason, failingSince }: Webhook): string {
  if (disabledReason !== null) return `disabled: ${disabledReason}`;
  if (!enabled) return 'disabled';
  return failingSince === null ? 'enabled' : `failing since ${failingSince}`;
}
