import type { IncomingMessage } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import type { FailedCredentials } from '../http/failed-credentials.ts';
import type { LineResponse } from '../http/line-response.ts';
import type { ProxiedTraffic } from '../http/public-server.ts';
import type { RequestHead } from '../http/request-head.ts';
import type { RequestIds } from '../http/request-id.ts';
import type { RateLimiter } from '../limiter/rate-limiter.ts';
import type { RequestTracing } from '../observability/tracing.ts';
import type { Clock } from '../platform/clock.ts';
import { Deadlines } from '../platform/deadlines.ts';
import type { UsageRecorder } from '../usage/usage.ts';
import { admit } from './admit.ts';
import { authenticate, type KeySource } from './authenticate.ts';
import type { BackendCall } from './backend-call.ts';
import type { BackendOptions } from './backend-connector.ts';
import { BackendPool } from './backend-pool.ts';
import { cors } from './cors.ts';
import { DedicatedConnections } from './dedicated-connections.ts';
import { deny } from './deny.ts';
import { Exchange, type Step } from './exchange.ts';
import { forward } from './forward.ts';
import { record } from './record.ts';
import { type ExchangeSummary, summaryOf } from './summary.ts';
import { Tunnels } from './tunnels.ts';
import { forwardUpgrade, responseOn } from './upgrade.ts';

/** All that proxying needs. */
export interface ProxyOptions {
  readonly backendUrl: URL;
  /** Certificates that may sign the backend's, in place of those that Node trusts. PEM. */
  readonly backendCa?: string;
  /** For the head of an answer, counted from the request's start. Milliseconds. */
  readonly backendTimeoutMs: number;
  /** Most requests that are with the backend at a time. */
  readonly backendConnections: number;
  /** Most requests that wait for a connection; four for each connection, but at least 64, unless told: what waits is served soon. */
  readonly backendWaiting?: number;
  /** How long the backend may be silent within a body; 30 000 unless told. Milliseconds. */
  readonly bodyIdleMs?: number;
  /** Ends a switched connection that carried no byte for so long; 120 000 unless told. Milliseconds. */
  readonly upgradeIdleMs?: number;
  /** Most switched connections, those being made included; 4096 unless told. */
  readonly maxUpgrades?: number;
  readonly keys: KeySource;
  /** Bounds how often an address is told that its key is wrong; undefined = not at all. */
  readonly failedCredentials?: FailedCredentials;
  readonly limiter: RateLimiter;
  readonly usage: UsageRecorder;
  readonly clock: Clock;
  readonly requestIds: Pick<RequestIds, 'idOf'>;
  /** Undefined: requests are not traced, and a client's `traceparent` is passed on as it is. */
  readonly tracing?: RequestTracing | undefined;
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
  /** Requests that have a backend connection, and that wait for one, and switched connections, now. */
  readonly backendLoad: { readonly busy: number; readonly waiting: number; readonly tunnels: number };
  /** Requests whose answer is not over. */
  readonly inFlight: number;
  /** Connections to the backend that were made since the start, those of upgrades included. */
  readonly backendConnects: number;
  /** To be called for each key that changed: closes its switched connections, within a second, if it may not be used any more. */
  recheckUpgradesOf(keyId: string): void;
  /** To be called when changes may have been missed: the same for every key that has switched connections. */
  recheckUpgrades(): void;
  /** Closes the connections to the backend; what is in progress fails. */
  destroy(): void;
}

const CONNECT_TIMEOUT_MS = 10_000;
const BODY_IDLE_MS = 30_000;
const UPGRADE_IDLE_MS = 120_000;
const WAITING_PER_CONNECTION = 4;
const LEAST_WAITING = 64;
const UPGRADES = 4096;

/** Builds the pipeline of a proxied request, and the one of an upgrade, which differs in its last step. */
export function createProxy(options: ProxyOptions): Proxy {
  const { backendUrl, backendTimeoutMs, clock, requestIds, tracing, observe = () => {} } = options;
  const backend: BackendOptions = {
    url: backendUrl,
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, backendTimeoutMs),
    bodyIdleMs: options.bodyIdleMs ?? BODY_IDLE_MS,
    ...(options.backendCa === undefined ? {} : { ca: options.backendCa }),
  };
  const pool = new BackendPool({
    ...backend,
    clock,
    connections: options.backendConnections,
    waiting:
      options.backendWaiting ?? Math.max(LEAST_WAITING, WAITING_PER_CONNECTION * options.backendConnections),
  });
  const tunnels = new Tunnels(options.keys, clock);
  const dedicated = new DedicatedConnections(
    backend,
    (pending) => pending + tunnels.size >= (options.maxUpgrades ?? UPGRADES),
  );
  const upgrading = new Set<Socket>();
  const firstBytes = new WeakMap<IncomingMessage, Buffer>();
  let inFlight = 0;
  const call = {
    ...options,
    deadlines: new Deadlines<BackendCall>(clock, (late) => late.checkDeadline()),
    host: backendUrl.host,
    basePath: backendUrl.pathname.replace(/\/+$/, ''),
    timeoutMs: backendTimeoutMs,
  };

  const judged: readonly Step[] = [
    cors(options.corsAllowedOrigins),
    authenticate(options),
    admit(options),
    record(options),
    deny(),
  ];
  const requestSteps: readonly Step[] = [...judged, forward({ ...call, connections: pool })];
  const upgradeSteps: readonly Step[] = [
    ...judged,
    forwardUpgrade({
      ...call,
      connections: dedicated,
      tunnels,
      idleMs: options.upgradeIdleMs ?? UPGRADE_IDLE_MS,
      firstBytesOf: ({ req }) => firstBytes.get(req) ?? Buffer.alloc(0),
    }),
  ];

  function run(steps: readonly Step[], req: IncomingMessage, res: LineResponse, head: RequestHead): void {
    const startedAtMs = clock.monotonicMs();
    const exchange = new Exchange(steps, { req, res, head, requestId: requestIds.idOf(req), startedAtMs });
    res.owner = exchange;
    if (tracing !== undefined) exchange.trace = tracing.begin(req, startedAtMs);
    inFlight += 1;
    res.on('close', () => {
      inFlight -= 1;
      exchange.isClosed = true;
      exchange.closedAtMs = clock.monotonicMs();
      exchange.backend?.abandon();
      exchange.onClosed?.(exchange);
      const summary = summaryOf(exchange);
      exchange.trace?.end(summary);
      observe(summary);
    });
    exchange.next();
  }

  return {
    handle: (req, res, head) => run(requestSteps, req, res, head),
    upgrade(req, socket, bytes, head) {
      upgrading.add(socket);
      socket.once('close', () => upgrading.delete(socket));
      firstBytes.set(req, bytes);
      run(upgradeSteps, req, responseOn(socket, req), head);
    },
    closeUpgrades() {
      for (const socket of upgrading) socket.destroy();
    },
    recheckUpgradesOf: (keyId) => tunnels.recheck(keyId),
    recheckUpgrades: () => tunnels.recheckAll(),
    get backendLoad() {
      return { busy: pool.busyCount, waiting: pool.waitingCount, tunnels: tunnels.size };
    },
    get inFlight() {
      return inFlight;
    },
    get backendConnects() {
      return pool.connects + dedicated.connects;
    },
    destroy() {
      pool.destroy();
      dedicated.destroy();
    },
  };
}
