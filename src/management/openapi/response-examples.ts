const KEY_ID = 'key_01KGH3V6ZQ5T8M2N4P6R8S0T2V';
const TOKEN_ID = 'adm_01KGH3V6ZQ5T8M2N4P6R8S0T2V';
const SESSION_ID = 'ses_01KGH3V6ZQ5T8M2N4P6R8S0T2V';
const CREATED_AT = '2026-02-03T04:05:06Z';
const CHANGED_AT = '2026-02-04T10:00:00Z';
const LATER = '2026-02-05T10:00:00Z';
const WEBHOOK_ID = 'whk_01KGH3V6ZQ5T8M2N4P6R8S0T2V';
const DELIVERY_ID = 'dlv_01KGH3V6ZQ5T8M2N4P6R8S0T2V';

const HANDOVER_ID = 'hnd_01KGH3V6ZQ5T8M2N4P6R8S0T2V';

const KEY_FIELDS = {
  enabled: true,
  expiresAt: null,
  rateLimitId: 'gold',
  externalId: 'customer-42',
  tags: ['eu', 'paid'],
  metadata: { contract: 'C-7' },
  overrides: {},
  allowedIps: null,
  allowedOrigins: null,
  selfService: [],
  managedBy: null,
  rotation: null,
  secretHint: 'tg_Ab3d…9xYz',
  lastUsedAt: CHANGED_AT,
};
const KEY_NAME = { consumerApiKeyId: KEY_ID, name: 'Mobile app' };
const KEY_TIMES = { createdAt: CREATED_AT, lastUpdated: CREATED_AT };
const KEY = { ...KEY_NAME, ...KEY_TIMES, ...KEY_FIELDS };
const TOTALS = { totalRequests: 120, successfulRequests: 110, failedRequests: 10 };
const COUNTS = { requests: 120, successful: 110, failed: 10 };
const ROTATED_KEY = {
  ...{ consumerApiKeyId: KEY_ID, secret: 'tg_…', previousValidUntil: LATER },
  message: 'The consumer API key has a new secret.',
};

const COUNTER = {
  limitId: 'main',
  limit: 1000,
  baseLimit: 1000,
  period: 'hour',
  per: 'key',
  mode: 'enforce',
  used: 12,
  granted: 0,
  remaining: 988,
  resetTime: '2026-02-04T11:00:00Z',
  open: true,
};
const KEY_LIMITS = {
  consumerApiKeyId: KEY_ID,
  rateLimitId: 'gold',
  now: CHANGED_AT,
  degraded: false,
  limits: [COUNTER],
};

const TERMS = { rateLimitId: 'gold', description: 'For partners', limit: 1000, period: 'hour' };
const PLAN = { ...TERMS, createdAt: CREATED_AT, lastUpdated: CREATED_AT };

const WEBHOOK = {
  ...{ webhookId: WEBHOOK_ID, url: 'https://hooks.example.com/tollgate', events: ['tollgate.key.*'] },
  ...{
    onlyTags: [],
    externalId: null,
    managedBy: null,
    description: 'Chat',
    enabled: true,
    batch: false,
    headers: { authorization: '***' },
  },
  ...{ secretHint: 'whsec_Ab3d…9xYz', rotation: null, disabledReason: null, failingSince: null },
  ...{ createdAt: CREATED_AT, lastUpdated: CREATED_AT },
};

const JOB_ITEM = {
  ...{ jobId: 'job_01KGH3V6ZQ5T8M2N4P6R8S0T2V', action: 'disable', state: 'running', done: 120, total: 412 },
  ...{ failedCount: 1, reason: null, createdAt: CHANGED_AT, endedAt: null },
};
const JOB = { ...JOB_ITEM, failed: [{ consumerApiKeyId: KEY_ID, code: 'key_not_found' }] };

const PREVIEWED = { requests: 9000, wasLimited: 20, wouldBeLimited: 80 };

const SERIES = {
  from: '2026-02-03T00:00:00Z',
  to: '2026-02-05T00:00:00Z',
  interval: 'day',
  timeZone: 'UTC',
  completeUntil: '2026-02-04T09:59:00Z',
};
const USAGE_ROW = {
  start: '2026-02-03T00:00:00Z',
  ...COUNTS,
  rateLimited: 6,
  clientErrors: 8,
  serverErrors: 1,
  shadowLimited: 0,
  averageResponseTimeMs: 8.25,
  forwarded: 114,
};

const TOKEN = {
  adminTokenId: TOKEN_ID,
  name: 'Support desk',
  scopes: ['keys:read', 'plans:read', 'usage:read', 'audit:read'],
  onlyTags: [],
  allowedIps: null,
  expiresAt: '2030-12-31T00:00:00Z',
  createdAt: CREATED_AT,
  lastUpdated: CREATED_AT,
  lastUsedAt: null,
  secretHint: 'tga_Ab3d…9xYz',
  rotation: null,
};

const CONFIGURATION_CHANGES = {
  changes: [
    { action: 'update', type: 'plan', id: 'gold', fields: { limit: { from: 1000, to: 2000 } } },
    { action: 'create', type: 'key', id: 'customer-42', fields: { name: { from: null, to: 'Mobile app' } } },
  ],
  summary: { create: 1, update: 1, delete: 0, unchanged: 3 },
  digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
};

const REACHABLE = { reachable: true, latencyMs: 0.4, fault: null };

const VERDICT = {
  ...{ allowed: true, status: 200, code: null },
  ...KEY_NAME,
  externalId: 'customer-42',
  rateLimitId: 'gold',
  tags: ['eu', 'paid'],
  metadata: { contract: 'C-7' },
  expiresAt: null,
  customerId: 'anonymous',
  limits: [{ limitId: 'main', limit: 1000, remaining: 987, resetTime: '2026-02-04T11:00:00Z' }],
  retryAfterSeconds: null,
};

/** An example response for each operation, by operation id. */
export const RESPONSE_EXAMPLES: Readonly<Record<string, object>> = {
  createConsumerKey: { id: KEY_ID, name: 'Mobile app', secret: 'tg_…', createdAt: '2026-02-03 04:05:06' },
  listConsumerKeys: { apiKeys: [{ ...KEY, usage: TOTALS, limits: [COUNTER] }], nextCursor: 'WyJ…', total: 2 },
  showConsumerKey: {
    ...KEY_NAME,
    secret: 'tg_…',
    ...KEY_TIMES,
    ...KEY_FIELDS,
    usage: {
      ...TOTALS,
      rateLimits: { limit: 1000, remaining: 988, resetTime: '2026-02-04T11:00:00Z' },
      endpoints: [{ endpoint: '/orders', ...COUNTS, averageResponseTimeMs: 8.25 }],
      usageByCustomer: [{ customerId: 'anonymous', ...COUNTS }],
    },
  },
  updateConsumerKey: { ...KEY, enabled: false, lastUpdated: CHANGED_AT },
  deleteConsumerKey: { consumerApiKeyId: KEY_ID, message: 'The consumer API key was deleted.' },
  rotateConsumerKey: ROTATED_KEY,
  endConsumerKeyRotation: KEY,
  makeHandover: {
    handoverId: HANDOVER_ID,
    url: 'https://api.example.com/tollgate/self/handover#tgh_…',
    expiresAt: LATER,
  },
  listHandovers: {
    handovers: [
      {
        ...{ handoverId: HANDOVER_ID, state: 'used', note: 'For the mobile team', createdAt: CREATED_AT },
        ...{ expiresAt: LATER, usedAt: CHANGED_AT, revokedAt: null },
      },
    ],
  },
  revokeHandover: { handoverId: HANDOVER_ID, message: 'The hand-over link was revoked.' },
  openHandover: {
    ...{ state: 'open', name: 'Mobile app', note: 'For the mobile team', expiresAt: LATER, usedAt: null },
  },
  revealHandover: { ...KEY_NAME, secret: 'tg_…' },
  findConsumerKey: { ...KEY, matchedSecret: 'current' },
  verifySecret: VERDICT,
  tryConsumerKey: VERDICT,
  importConsumerKeys: {
    results: [
      { index: 0, consumerApiKeyId: KEY_ID },
      { index: 1, code: 'secret_taken' },
    ],
  },
  showConsumerKeyUsage: { ...SERIES, rows: [USAGE_ROW] },
  showUsage: {
    ...SERIES,
    rows: [{ ...USAGE_ROW, consumerApiKeyId: KEY_ID, consumerApiKeyName: 'Mobile app' }],
  },
  showKeyLimits: KEY_LIMITS,
  resetKeyLimits: {
    ...KEY_LIMITS,
    limits: [{ ...COUNTER, used: 0, remaining: 1000, open: false }],
  },
  grantKeyLimits: { ...KEY_LIMITS, limits: [{ ...COUNTER, granted: 500, remaining: 1488 }] },
  createRateLimit: { ...TERMS, createdAt: CREATED_AT },
  listRateLimits: { rateLimits: [{ ...PLAN, boundKeys: 3 }], total: 1 },
  showRateLimit: PLAN,
  putRateLimit: { ...PLAN, additionalLimits: [{ limitId: 'burst', limit: 50, period: '1s' }] },
  updateRateLimit: { ...PLAN, limit: 2000, lastUpdated: CHANGED_AT },
  deleteRateLimit: { rateLimitId: 'gold', message: 'The rate limit plan was deleted.', reboundKeys: 3 },
  applyRateLimit: {
    consumerApiKeyId: KEY_ID,
    rateLimitId: 'gold',
    message: 'The rate limit plan was applied to the consumer API key.',
    limit: 1000,
    period: 'hour',
  },
  createAdminToken: { ...TOKEN, secret: 'tga_…' },
  listAdminTokens: { adminTokens: [TOKEN], total: 1 },
  showAdminToken: TOKEN,
  updateAdminToken: { ...TOKEN, name: 'Support', lastUpdated: CHANGED_AT },
  deleteAdminToken: { adminTokenId: TOKEN_ID, message: 'The admin token was deleted.' },
  rotateAdminToken: {
    ...{ adminTokenId: TOKEN_ID, secret: 'tga_…', previousValidUntil: LATER },
    message: 'The admin token has another secret.',
  },
  whoami: {
    ...{ type: 'token', adminTokenId: TOKEN_ID, name: 'Support desk', scopes: TOKEN.scopes, onlyTags: [] },
    ...{ sessionId: null, subject: null, email: null },
    ...{ expiresAt: '2030-12-31T00:00:00Z', version: '1.0.0' },
    settings: {
      keyPrefix: 'tg',
      secretReveal: 'always',
      defaultPlanId: 'default',
      customerIdHeader: 'x-customer-id',
      pathCase: 'insensitive',
      usageRetentionDays: 90,
      usageDailyRetentionDays: 400,
      auditRetentionDays: 365,
      publicPort: 8080,
    },
  },
  showSystem: {
    at: CHANGED_AT,
    version: '1.0.0',
    degraded: [],
    replicas: [
      {
        replicaId: '9xYzAb3dQw7pRt5K',
        current: true,
        lastSeenAt: CHANGED_AT,
        startedAt: CREATED_AT,
        version: '1.0.0',
        host: 'tollgate-6d8f',
        pid: 1,
        workers: 1,
        degraded: [],
      },
    ],
    liveReplicas: 1,
    stores: {
      postgres: {
        ...REACHABLE,
        embedded: false,
        version: '18.4',
        migrations: { applied: ['0001_records'], pending: [] },
      },
      redis: {
        ...REACHABLE,
        mode: 'single',
        servers: [
          {
            address: 'redis:6379',
            version: '8.2.1',
            role: 'master',
            evictionPolicy: 'noeviction',
            appendOnly: true,
          },
        ],
      },
    },
    usage: {
      flushIntervalSeconds: 10,
      oldestPendingAt: '2026-02-04T09:59:57Z',
      pendingSeconds: 3,
      lastFlushAt: '2026-02-04T09:59:58Z',
    },
    backend: { ...REACHABLE, address: 'backend:3000' },
  },
  previewRateLimit: {
    ...{ rateLimitId: 'gold', from: '2026-01-08T00:00:00Z', to: '2026-02-04T10:00:00Z' },
    ...{ keys: 40, keysWereLimited: 1, keysWouldBeLimited: 2, ...PREVIEWED },
    limits: [
      {
        ...{ limitId: 'main', limit: 500, period: 'hour', quality: 'hours', reason: null },
        ...{ wouldBeLimited: 80, shadowLimit: null },
      },
    ],
    costsIgnored: false,
    worst: [{ consumerApiKeyId: KEY_ID, name: 'Mobile app', ...PREVIEWED }],
  },
  changeConsumerKeys: { ...JOB, done: 0, failedCount: 0, failed: [] },
  listJobs: { jobs: [JOB_ITEM] },
  showJob: JOB,
  cancelJob: { ...JOB, state: 'cancelled', endedAt: LATER },
  createWebhook: { ...WEBHOOK, secret: 'whsec_…' },
  listWebhooks: { webhooks: [WEBHOOK] },
  showWebhook: WEBHOOK,
  listSessions: {
    sessions: [
      {
        ...{
          sessionId: SESSION_ID,
          current: true,
          kind: 'browser',
          subject: '00u1a2b3',
          name: 'Ada Example',
        },
        ...{ email: 'ada@example.com', scopes: TOKEN.scopes, onlyTags: [], address: '203.0.113.7' },
        ...{ createdAt: CHANGED_AT, lastUsedAt: CHANGED_AT, expiresAt: LATER },
      },
    ],
  },
  endSession: { sessionId: SESSION_ID, message: 'The session has ended.' },
  updateWebhook: { ...WEBHOOK, enabled: false },
  deleteWebhook: { webhookId: WEBHOOK_ID, message: 'The webhook was deleted.' },
  rotateWebhook: {
    ...{ webhookId: WEBHOOK_ID, secret: 'whsec_…', previousValidUntil: LATER },
    message: 'The webhook has another secret.',
  },
  testWebhook: { webhookId: WEBHOOK_ID, deliveryId: DELIVERY_ID, message: 'A test event is being sent.' },
  listWebhookDeliveries: {
    deliveries: [
      {
        ...{
          deliveryId: DELIVERY_ID,
          eventType: 'tollgate.key.updated',
          eventIds: ['aud_0000000000000042_9f86d081884c'],
        },
        ...{ createdAt: CHANGED_AT, status: 'succeeded', nextAttemptAt: null },
        attempts: [{ at: CHANGED_AT, responseStatus: 204, durationMs: 35, fault: null }],
        ...{ responseStatus: 204, durationMs: 35, body: '{"specversion":"1.0", …}' },
      },
    ],
    nextCursor: 'WyJ…',
  },
  resendWebhookDelivery: {
    ...{ webhookId: WEBHOOK_ID, deliveryId: DELIVERY_ID },
    message: 'The delivery is being sent again.',
  },
  listAuditLog: {
    entries: [
      {
        auditId: 'aud_0000000000000042',
        at: CHANGED_AT,
        action: 'key.update',
        actor: { type: 'token', adminTokenId: TOKEN_ID, name: 'Support desk' },
        target: { type: 'key', id: KEY_ID, name: 'Mobile app' },
        changes: { enabled: { from: true, to: false } },
        reason: 'ticket 4711',
        requestId: '7hG2kQpZ0aBcDeFg',
        address: '203.0.113.7',
        outcome: 'success',
        jobId: null,
      },
    ],
    nextCursor: 'WyJ…',
  },
  verifyAuditLog: {
    valid: true,
    entries: 42,
    count: 1042,
    lastHash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    lastAt: '2026-11-22T10:00:00Z',
  },
  exportConfiguration: {
    plans: [TERMS],
    keys: [{ externalId: 'customer-42', name: 'Mobile app', rateLimitId: 'gold', tags: ['eu', 'paid'] }],
  },
  diffConfiguration: CONFIGURATION_CHANGES,
  applyConfiguration: {
    ...CONFIGURATION_CHANGES,
    secrets: [{ externalId: 'customer-42', consumerApiKeyId: KEY_ID, secret: 'tg_…' }],
  },
  openApiDocument: { openapi: '3.1.0', info: { title: 'Tollgate management interface', version: '1' } },
  showOwnKey: {
    ...{ ...KEY_NAME, expiresAt: null, rotation: null, selfService: ['rotate'], rateLimitId: 'gold' },
    limits: [COUNTER],
    usage: TOTALS,
  },
  showOwnUsage: { ...SERIES, rows: [USAGE_ROW] },
  rotateOwnKey: ROTATED_KEY,
};
