import type { components } from '../../../client/management-api.ts';
import { type Scope, useScopes } from '../../api/api-context.tsx';
import { scopesOf } from './event-choice.ts';

export type Webhook = components['schemas']['Webhook'];
export type Delivery = components['schemas']['WebhookDelivery'];

/** What a dialog about a webhook gets. */
export interface WebhookDialogProps {
  readonly webhook: Webhook;
  readonly onClose: () => void;
}

/** The description, or else the host: the path of an address is a secret at many receivers. */
export function webhookName({ description, url }: Pick<Webhook, 'description' | 'url'>): string {
  return description === '' ? new URL(url).host : description;
}

/** Whether the token may change, test and rotate a webhook: it must be allowed to hear what the webhook hears. */
export function useMayChange(): (webhook: Webhook) => boolean {
  const { can } = useScopes();
  const needed = ({ events }: Webhook): readonly Scope[] => ['webhooks:write', ...scopesOf(events)];
  return (webhook) => needed(webhook).every(can);
}
