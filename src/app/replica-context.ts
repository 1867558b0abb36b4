import type { Settings } from '../config/settings.ts';
import type { Platform } from '../platform/platform.ts';
import type { Lifecycle } from '../platform/process/lifecycle.ts';

/** What every part of a replica is built from. */
export interface ReplicaContext {
  readonly settings: Settings;
  readonly platform: Platform;
  /** Each part that runs registers here how it is stopped. */
  readonly lifecycle: Lifecycle;
}

/** Longest that a part may take to be closed at the stop. Milliseconds. */
export const CLOSE_DEADLINE_MS = 5000;
