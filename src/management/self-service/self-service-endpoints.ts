import type { Endpoint } from '../endpoint.ts';
import { rotateOwnKey, showOwnKey, showOwnUsage } from './own-key.ts';

/** What consumers may do with the key that they present. */
export const SELF_SERVICE_ENDPOINTS: readonly Endpoint[] = [showOwnKey, showOwnUsage, rotateOwnKey];
