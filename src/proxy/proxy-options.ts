import type { BlockList } from 'node:net';
import type { BackendOptions } from '../backend/connector.ts';
import type { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import type { RequestIds } from '../http/request-id.ts';
import type { KeyCache } from '../keys/cache/key-cache.ts';
import type { KeyOrigins } from '../keys/cache/key-origins.ts';
import type { PreviousSecretUses } from '../keys/secrets/previous-secret-uses.ts';
import type { CostSettler } from '../limiter/cost-settler.ts';
import type { RateLimiter } from '../limiter/rate-limiter.ts';
import type { ThresholdWatch } from '../limiter/threshold-watch.ts';
import type { RequestTracing } from '../observability/tracing.ts';
import type { PathCase } from '../paths/path-readings.ts';
import type { Clock } from '../platform/clock.ts';
import type { UsageRecorder } from '../usage/usage-buffer.ts';
import type { BodyRateOptions } from './forwarding/rate-watch.ts';
import type { KeySource } from './steps/authenticate.ts';
import type { ExchangeSummary } from './steps/record.ts';

/** Timeout for making a connection to the backend, TLS included, unless the timeout of a request is shorter. Milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** All that proxying needs. */
export interface ProxyOptions extends BodyRateOptions {
  /** Null: requests are only decided, and none is forwarded. */
  readonly backendUrl: URL | null;
  /** Timeout of the response head, counted from the request's start. Milliseconds. */
  readonly backendTimeoutMs: number;
  /** Idle timeout within a response's body. Milliseconds. */
  readonly backendIdleMs: number;
  /** Most requests that are with the backend at a time. */
  readonly backendConnections: number;
  /** Most of them of one key. */
  readonly backendConnectionsPerKey: number;
  /** Most requests that wait for a connection; for the default see `BackendPoolOptions`. */
  readonly backendWaiting?: number;
  /** Idle timeout of a switched connection; 120 000 by default. Milliseconds. */
  readonly upgradeIdleMs?: number;
  /** Most switched connections, those being made included. */
  readonly maxUpgrades: number;
  /** Most of them of one key. */
  readonly upgradesPerKey: number;
  readonly keys: KeySource & Pick<KeyCache, 'isCurrent'>;
  /** Limits how often an address may fail to authenticate. */
  readonly failedCredentials: FailedCredentials;
  readonly limiter: RateLimiter;
  /** Undefined: no threshold is watched. */
  readonly thresholds?: ThresholdWatch | undefined;
  /** Takes the costs that backends report. */
  readonly costSettler: CostSettler;
  readonly usage: UsageRecorder;
  /** Records that the previous secret of a key is still used. */
  readonly previousSecretUses: Pick<PreviousSecretUses, 'note'>;
  readonly clock: Clock;
  readonly requestIds: Pick<RequestIds, 'idOf'>;
  /** Undefined: requests are not traced, and a client's `traceparent` is passed on as it is. */
  readonly tracing?: RequestTracing | undefined;
  /** Lower case. */
  readonly customerIdHeader: string;
  /** Path patterns that name endpoints in the statistics. */
  readonly endpointPatterns: readonly string[];
  /** How paths are compared with patterns. */
  readonly pathCase: PathCase;
  readonly forwardAuthorization: boolean;
  /** Whether the cookies of the console are removed from what is forwarded. */
  readonly dropsSessionCookies: boolean;
  readonly trustedProxies: BlockList;
  /** Origins whose pages may use any key that is not restricted to origins; `*` = any. */
  readonly corsAllowedOrigins: readonly string[];
  /** The origin of the public port as browsers see it; null = not known. */
  readonly publicUrl: string | null;
  /** The origins to which keys are restricted. */
  readonly keyOrigins: Pick<KeyOrigins, 'find' | 'knows'>;
  /** Called once for every request, when its response is over. Must not throw. */
  readonly observe: (summary: ExchangeSummary) => void;
  /** Called with an error that was thrown too late to fail a request. Must not throw. */
  readonly onFault: (error: unknown) => void;
}

/** In place of the URL of a backend: no request reaches a pool that has it. */
const NO_BACKEND = new URL('http://backend.invalid');

/** How connections to the backend are made. */
export function connectionOptions(options: ProxyOptions): BackendOptions {
  const { backendUrl, backendTimeoutMs, backendIdleMs, onFault } = options;
  return {
    url: backendUrl ?? NO_BACKEND,
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, backendTimeoutMs),
    bodyIdleMs: backendIdleMs,
    onFault,
  };
}
