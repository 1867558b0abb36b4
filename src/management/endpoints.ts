import { showConsumerKey } from './consumer-key-detail.ts';
import {
  createConsumerKey,
  deleteConsumerKey,
  listConsumerKeys,
  updateConsumerKey,
} from './consumer-keys.ts';
import type { Endpoint } from './endpoint.ts';
import { applyRateLimit } from './plan-bindings.ts';
import {
  createRateLimit,
  deleteRateLimit,
  listRateLimits,
  showRateLimit,
  updateRateLimit,
} from './rate-limits.ts';

/** All endpoints of the management interface. Fixed paths stand before those with a parameter that would match them too. */
export const ENDPOINTS: readonly Endpoint[] = [
  createConsumerKey,
  listConsumerKeys,
  showConsumerKey,
  updateConsumerKey,
  deleteConsumerKey,
  createRateLimit,
  listRateLimits,
  showRateLimit,
  updateRateLimit,
  deleteRateLimit,
  applyRateLimit,
];
