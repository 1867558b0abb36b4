import type { Platform } from '../platform/platform.ts';
import type { ShutdownOrder } from '../platform/process/shutdown-order.ts';
import type { Settings } from '../settings/settings.ts';
import { QUERY_TIMEOUT_MS } from '../storage/postgres/postgres-connection.ts';

/** What every part of a replica is built from. */
export interface ReplicaContext {
  readonly settings: Settings;
  readonly platform: Platform;
  /** Each running part registers here how it is stopped. */
  readonly shutdown: ShutdownOrder;
}

/** The longest that closing a part may take at the stop: longer than its query to a Postgres that does not respond. Milliseconds. */
export const CLOSE_DEADLINE_MS = QUERY_TIMEOUT_MS + 1000;
