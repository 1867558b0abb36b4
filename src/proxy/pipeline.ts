import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import type { ProxiedTraffic } from '../http/public-server.ts';
import type { RequestHead } from '../http/request-head.ts';
import type { RateLimiter } from '../limiter/rate-limiter.ts';
import type { Clock } from '../platform/clock.ts';
import type { UsageRecorder } from '../usage/usage.ts';
import { admit } from './admit.ts';
import { authenticate, type KeySource } from './authenticate.ts';
import { BackendPool } from './backend-pool.ts';
import { cors } from './cors.ts';
import { deny } from './deny.ts';
import { Exchange, type Step } from './exchange.ts';
import { forward } from './forward.ts';
import { record } from './record.ts';
import { type ExchangeSummary, summaryOf } from './summary.ts';

/** All that proxying needs. */
export interface ProxyOptions {
  readonly backendUrl: URL;
  /** Certificates that sign the backend's, besides those that Node knows. PEM. */
  readonly backendCa?: string;
  /** For the head of an answer, counted from the request's start. Milliseconds. */
  readonly backendTimeoutMs: number;
  /** Most requests that are with the backend at a time. */
  readonly backendConnections: number;
  /** Most requests that wait for a connection; 1024 unless told. */
  readonly backendWaiting?: number;
  /** How long the backend may be silent within a body; 30 000 unless told. Milliseconds. */
  readonly bodyIdleMs?: number;
  readonly keys: KeySource;
  readonly limiter: RateLimiter;
  readonly usage: UsageRecorder;
  readonly clock: Clock;
  /** Lower case. */
  readonly customerIdHeader: string;
  readonly forwardAuthorization: boolean;
  readonly trustedProxies: BlockList;
  /** Origins whose pages may call; `*` = any. */
  readonly corsAllowedOrigins: readonly string[];
  /** Told of every request once, when its answer is over. Must not throw. */
  readonly observe?: (summary: ExchangeSummary) => void;
}

/** The proxied side of the gateway. */
export interface Proxy extends ProxiedTraffic {
  /** Requests that have a backend connection, and that wait for one, now. */
  readonly backendLoad: { readonly busy: number; readonly waiting: number };
  /** Closes the connections to the backend; what is in progress fails. */
  destroy(): void;
}

const CONNECT_TIMEOUT_MS = 10_000;
const BODY_IDLE_MS = 30_000;
const WAITING = 1024;

/** Builds the pipeline of a proxied request. */
export function createProxy(options: ProxyOptions): Proxy {
  const { backendUrl, backendTimeoutMs, clock, observe = () => {} } = options;
  const backend = {
    url: backendUrl,
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, backendTimeoutMs),
    bodyIdleMs: options.bodyIdleMs ?? BODY_IDLE_MS,
    ...(options.backendCa === undefined ? {} : { ca: options.backendCa }),
  };
  const pool = new BackendPool({
    ...backend,
    connections: options.backendConnections,
    waiting: options.backendWaiting ?? WAITING,
  });
  const basePath = backendUrl.pathname.replace(/\/+$/, '');

  const steps: readonly Step[] = [
    cors(options.corsAllowedOrigins),
    authenticate(options),
    admit(options),
    record(options),
    deny(),
    forward({ ...options, connections: pool, basePath, timeoutMs: backendTimeoutMs }),
  ];

  return {
    handle(req: IncomingMessage, res: ServerResponse, head: RequestHead): void {
      const exchange = new Exchange(steps, { req, res, head, startedAtMs: clock.monotonicMs() });
      res.once('close', () => {
        exchange.isClosed = true;
        exchange.backend?.abandon();
        observe(summaryOf(exchange, clock));
      });
      exchange.next();
    },
    upgrade(_req: IncomingMessage, socket: Socket): void {
      socket.destroy();
    },
    closeUpgrades(): void {},
    get backendLoad() {
      return { busy: pool.busyCount, waiting: pool.waitingCount };
    },
    destroy: () => pool.destroy(),
  };
}
