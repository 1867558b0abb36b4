const KEY_ID = 'key_01KGH3V6ZQ5T8M2N4P6R8S0T2V';

const CONFIGURATION = {
  plans: [{ rateLimitId: 'silver', limit: 1000, period: 'hour' }],
  keys: [{ externalId: 'customer-42', name: 'Mobile app', rateLimitId: 'silver', tags: ['eu'] }],
};

const VERIFIED_REQUEST = { secret: 'tg_…', method: 'POST', path: '/v1/orders', address: '203.0.113.7' };

/** An example for each request body, by operation id. */
export const BODY_EXAMPLES: Readonly<Record<string, object>> = {
  createConsumerKey: {
    name: 'Mobile app',
    rateLimitId: 'gold',
    externalId: 'customer-42',
    tags: ['eu', 'paid'],
  },
  updateConsumerKey: { enabled: false, addTags: ['suspended'] },
  rotateConsumerKey: { graceSeconds: 86_400 },
  makeHandover: { ttlSeconds: 86_400, note: 'For the mobile team' },
  openHandover: { token: 'tgh_…' },
  revealHandover: { token: 'tgh_…' },
  endConsumerKeyRotation: { keep: 'new' },
  findConsumerKey: { secret: 'an-existing-secret-of-the-app' },
  verifySecret: VERIFIED_REQUEST,
  tryConsumerKey: { ...VERIFIED_REQUEST, count: false },
  importConsumerKeys: {
    keys: [
      { name: 'Mobile app', secret: 'an-existing-secret-of-the-app', rateLimitId: 'default' },
      {
        name: 'Partner',
        secretHash: {
          algorithm: 'sha256',
          value: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
        },
      },
    ],
    onConflict: 'fail',
  },
  changeConsumerKeys: {
    filter: { status: 'expired', expiresBefore: '2026-01-01' },
    action: 'delete',
    expectCount: 412,
  },
  createRateLimit: { rateLimitId: 'gold', description: 'For partners', limit: 1000, period: 'hour' },
  putRateLimit: {
    limit: 1000,
    period: 'hour',
    additionalLimits: [{ limitId: 'burst', limit: 50, period: '1s' }],
  },
  updateRateLimit: { limit: 2000 },
  previewRateLimit: { limit: 500 },
  applyRateLimit: { consumerApiKeyId: KEY_ID, rateLimitId: 'gold' },
  resetKeyLimits: { limitId: 'main', reason: 'asked for by phone' },
  grantKeyLimits: { requests: 500, limitId: 'main' },
  createAdminToken: { name: 'Support desk', scopes: ['support'], expiresAt: '2030-12-31T00:00:00Z' },
  updateAdminToken: { scopes: ['read-only'] },
  rotateAdminToken: { graceSeconds: 3600 },
  createWebhook: { url: 'https://hooks.example.com/tollgate', events: ['tollgate.key.*'] },
  updateWebhook: { enabled: false },
  rotateWebhook: { graceSeconds: 86_400 },
  rotateOwnKey: { graceSeconds: 86_400 },
  diffConfiguration: { config: CONFIGURATION, owner: 'gateway-repository', prune: true },
  applyConfiguration: { config: CONFIGURATION, owner: 'gateway-repository', prune: true },
};
