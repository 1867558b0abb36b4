import { showConsumerKey } from './consumer-key-detail.ts';
import {
  createConsumerKey,
  deleteConsumerKey,
  listConsumerKeys,
  updateConsumerKey,
} from './consumer-keys.ts';
import type { Endpoint } from './endpoint.ts';
import { grantKeyLimits, resetKeyLimits, showKeyLimits } from './key-limits.ts';
import { applyRateLimit } from './plan-bindings.ts';
import {
  createRateLimit,
  deleteRateLimit,
  listRateLimits,
  putRateLimit,
  showRateLimit,
  updateRateLimit,
} from './rate-limits.ts';
import { showKeyUsage, showUsage } from './usage.ts';

/** All endpoints of the management interface. Fixed paths stand before those with a parameter that would match them too. */
export const ENDPOINTS: readonly Endpoint[] = [
  createConsumerKey,
  listConsumerKeys,
  showConsumerKey,
  updateConsumerKey,
  deleteConsumerKey,
  showKeyUsage,
  createRateLimit,
  listRateLimits,
  showRateLimit,
  putRateLimit,
  updateRateLimit,
  deleteRateLimit,
  applyRateLimit,
  showKeyLimits,
  resetKeyLimits,
  grantKeyLimits,
  showUsage,
];
