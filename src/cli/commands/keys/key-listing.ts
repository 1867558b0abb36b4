import type { paths } from '../../../client/management-api.ts';
import { systemClock } from '../../../platform/clock.ts';
import type { Cell, Listing } from '../../output/columns.ts';

/** A key as the list and the changes show it. */
export type Key =
  paths['/consumer-api-key']['get']['responses'][200]['content']['application/json']['apiKeys'][number];

/** A key with its usage; the secret is shown only on demand. */
type KeyDetail = Omit<
  paths['/consumer-api-key/{consumerApiKeyId}']['get']['responses'][200]['content']['application/json'],
  'secret'
> & { readonly secret?: string };

export const KEYS: Listing<Key> = {
  columns: [
    { name: 'id', toCell: ({ consumerApiKeyId }) => consumerApiKeyId },
    { name: 'name', toCell: ({ name }) => name },
    { name: 'status', toCell: statusOf },
    { name: 'plan', toCell: ({ rateLimitId }) => rateLimitId ?? '(default)' },
    { name: 'expires', toCell: ({ expiresAt }) => expiresAt },
    { name: 'tags', toCell: ({ tags }) => tags.join(' ') },
    { name: 'owner', toCell: ({ externalId }) => externalId },
    { name: 'created', toCell: ({ createdAt }) => createdAt },
  ],
  idOf: ({ consumerApiKeyId }) => consumerApiKeyId,
};

export const KEY_DETAIL: Listing<KeyDetail> = {
  columns: [
    ...KEYS.columns,
    { name: 'updated', toCell: ({ lastUpdated }) => lastUpdated },
    { name: 'addresses', toCell: ({ allowedIps }) => allowedIps?.join(' ') },
    { name: 'origins', toCell: ({ allowedOrigins }) => allowedOrigins?.join(' ') },
    { name: 'metadata', toCell: ({ metadata }) => metadata && JSON.stringify(metadata) },
    { name: 'secret', toCell: ({ secret }) => secret ?? '(--reveal shows it)' },
    { name: 'requests', toCell: ({ usage }) => usage.totalRequests },
    { name: 'successful', toCell: ({ usage }) => usage.successfulRequests },
    { name: 'failed', toCell: ({ usage }) => usage.failedRequests },
    { name: 'remaining', toCell: ({ usage }) => remainingOf(usage.rateLimits) },
  ],
  idOf: KEYS.idOf,
};

function statusOf({ enabled, expiresAt }: Key): string {
  if (!enabled) return 'disabled';
  return expiresAt !== null && Date.parse(expiresAt) <= systemClock.nowMs() ? 'expired' : 'active';
}

function remainingOf(window: KeyDetail['usage']['rateLimits']): Cell {
  return window === null ? 'unlimited' : `${window.remaining} of ${window.limit} until ${window.resetTime}`;
}
