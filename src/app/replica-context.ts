import type { Platform } from '../platform/platform.ts';
import type { ShutdownOrder } from '../platform/process/shutdown-order.ts';
import type { Settings } from '../settings/settings.ts';

/** What every part of a replica is built from. */
export interface ReplicaContext {
  readonly settings: Settings;
  readonly platform: Platform;
  /** Each running part registers here how it is stopped. */
  readonly shutdown: ShutdownOrder;
}

/** The longest that closing a part may take at the stop. Milliseconds. */
export const CLOSE_DEADLINE_MS = 5000;
