import { listAuditLog, verifyAuditLog } from './audit/read-audit-log.ts';
import { applyConfiguration, diffConfiguration } from './configuration/apply-configuration.ts';
import { exportConfiguration } from './configuration/export-configuration.ts';
import type { Endpoint } from './endpoint.ts';
import { listHandovers, makeHandover, revokeHandover } from './handovers/handovers.ts';
import { HOLDER_ENDPOINTS } from './handovers/opened-handover.ts';
import { cancelJob, listJobs, showJob } from './jobs/jobs.ts';
import { changeConsumerKeys } from './keys/bulk-keys.ts';
import { showConsumerKey } from './keys/consumer-key-detail.ts';
import { createConsumerKey, deleteConsumerKey, updateConsumerKey } from './keys/consumer-keys.ts';
import { findConsumerKey } from './keys/find-key.ts';
import { importConsumerKeys } from './keys/import-keys.ts';
import { listConsumerKeys } from './keys/list-keys.ts';
import { grantKeyLimits, resetKeyLimits, showKeyLimits } from './keys/live-counters.ts';
import { endConsumerKeyRotation, rotateConsumerKey } from './keys/rotate-key.ts';
import { tryConsumerKey, verifySecret } from './keys/verify-key.ts';
import { openApiDocument } from './openapi/document.ts';
import { applyRateLimit } from './plans/plan-bindings.ts';
import { previewRateLimit } from './plans/preview-plan.ts';
import {
  createRateLimit,
  deleteRateLimit,
  listRateLimits,
  putRateLimit,
  showRateLimit,
  updateRateLimit,
} from './plans/rate-limits.ts';
import { SELF_SERVICE_ENDPOINTS } from './self-service/self-service-endpoints.ts';
import { endSession, listSessions } from './sign-in/people-sessions.ts';
import { showSystem } from './system/show-system.ts';
import {
  createAdminToken,
  deleteAdminToken,
  listAdminTokens,
  rotateAdminToken,
  showAdminToken,
  updateAdminToken,
} from './tokens/admin-tokens.ts';
import { showWhoami } from './tokens/whoami.ts';
import { showKeyUsage, showUsage } from './usage/show-usage.ts';
import { listDeliveries, resendDelivery, testWebhook } from './webhooks/deliveries.ts';
import { streamEvents } from './webhooks/stream-events.ts';
import {
  createWebhook,
  deleteWebhook,
  listWebhooks,
  rotateWebhook,
  showWebhook,
  updateWebhook,
} from './webhooks/webhooks.ts';

/** Shows the OpenAPI document of this gateway. */
const showOpenApi: Endpoint = {
  method: 'get',
  path: '/tollgate/openapi.json',
  operationId: 'openApiDocument',
  summary: 'Show this document',
  scope: null,
  status: 200,
  response: { type: 'object', description: 'An OpenAPI 3.1 document.' },
  errors: [],
  handle: async () => openApiDocument(DOCUMENTED_ENDPOINTS),
};

/** All endpoints of the management interface. Fixed paths come before those with a parameter that would also match them. */
export const ENDPOINTS: readonly Endpoint[] = [
  createConsumerKey,
  listConsumerKeys,
  showConsumerKey,
  updateConsumerKey,
  deleteConsumerKey,
  rotateConsumerKey,
  endConsumerKeyRotation,
  makeHandover,
  listHandovers,
  revokeHandover,
  findConsumerKey,
  importConsumerKeys,
  changeConsumerKeys,
  tryConsumerKey,
  showKeyUsage,
  createRateLimit,
  listRateLimits,
  showRateLimit,
  putRateLimit,
  updateRateLimit,
  deleteRateLimit,
  previewRateLimit,
  applyRateLimit,
  showKeyLimits,
  resetKeyLimits,
  grantKeyLimits,
  showUsage,
  createAdminToken,
  listAdminTokens,
  showAdminToken,
  updateAdminToken,
  deleteAdminToken,
  rotateAdminToken,
  createWebhook,
  listWebhooks,
  showWebhook,
  updateWebhook,
  deleteWebhook,
  rotateWebhook,
  testWebhook,
  listDeliveries,
  resendDelivery,
  streamEvents,
  listJobs,
  showJob,
  cancelJob,
  showWhoami,
  showSystem,
  listAuditLog,
  verifyAuditLog,
  exportConfiguration,
  diffConfiguration,
  applyConfiguration,
  showOpenApi,
];

/** Further endpoints where people can sign in with an identity provider. */
export const SIGN_IN_ENDPOINTS: readonly Endpoint[] = [listSessions, endSession];

/** All endpoints, including that of `AUTHORIZE_PORT` and those for consumers and for holders of a link, which self-service serves. */
export const DOCUMENTED_ENDPOINTS: readonly Endpoint[] = [
  ...ENDPOINTS,
  ...SIGN_IN_ENDPOINTS,
  verifySecret,
  ...SELF_SERVICE_ENDPOINTS,
  ...HOLDER_ENDPOINTS,
];
