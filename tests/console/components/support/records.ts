import type { KeyDetail } from '../../../../src/console/pages/keys/key-model.ts';
import type { Plan } from '../../../../src/console/pages/plans/plan-types.ts';
import type { AdminToken } from '../../../../src/console/pages/tokens/shown-token.ts';
import type { Webhook } from '../../../../src/console/pages/webhooks/shown-webhook.ts';

const AT = '2026-01-02T03:04:05Z';
const MADE = { createdAt: AT, lastUpdated: AT };

/** A record of each kind, as the management interface shows one that has only what it needs. */
export const KEY: KeyDetail = {
  ...{ ...MADE, consumerApiKeyId: 'key_1', name: 'Shop', secret: '***', secretHint: 'tg_…1234' },
  ...{ expiresAt: null, rateLimitId: null, externalId: null, tags: [], metadata: null, overrides: {} },
  ...{ allowedIps: null, allowedOrigins: null, selfService: [], managedBy: null, rotation: null },
  ...{ enabled: true, lastUsedAt: null },
  usage: {
    ...{ totalRequests: 0, successfulRequests: 0, failedRequests: 0, rateLimits: null },
    ...{ endpoints: [], usageByCustomer: [] },
  },
};

export const PLAN: Plan = {
  ...{ ...MADE, rateLimitId: 'gold', description: 'Gold', limit: 100, period: 'day' },
  ...{ additionalLimits: [], costs: [] },
};

export const TOKEN: AdminToken = {
  ...{ ...MADE, adminTokenId: 'admin_2', name: 'Deployment', secretHint: 'tga_…1234' },
  ...{ onlyTags: [], allowedIps: null, expiresAt: null, lastUsedAt: null, rotation: null },
  scopes: ['keys:read'],
};

export const WEBHOOK: Webhook = {
  ...{ ...MADE, webhookId: 'whk_1', url: 'https://example.com', events: ['tollgate.key.*'], onlyTags: [] },
  ...{ externalId: null, description: 'Chat', enabled: true, batch: false, headers: {}, rotation: null },
  ...{ secretHint: 'whsec_…1234', disabledReason: null, failingSince: null, managedBy: null },
};
