// The room `proxy`: a proxied request from its head to the end of its response, as a list of steps.
// In: a parsed request for the backend.
// Out: the backend's response or a rejection, and a summary of the exchange for statistics, metrics, log and trace.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { DedicatedConnections } from '../backend/pool/dedicated-connections.ts';
import type { BackendConnections, NoPlace } from '../backend/pool/places.ts';
import { BackendPool } from '../backend/pool/pool.ts';
import { TollgateError } from '../errors.ts';
import type { RawHeadResponse } from '../http/node-internals.ts';
import type { ParsedRequest } from '../http/parsed-request.ts';
import type { KeySnapshot } from '../keys/consumer-key.ts';
import type { Outcome } from '../observability/outcomes.ts';
import { DeadlineQueue } from '../platform/deadline-queue.ts';
import { Exchange, type Step } from './exchange.ts';
import type { BackendCall } from './forwarding/backend-call.ts';
import type { PlaceKind } from './forwarding/backend-errors.ts';
import { minimumBodyRates, type RateWatch } from './forwarding/rate-watch.ts';
import { ResponseBatcher } from './forwarding/response-stream.ts';
import { KeyUses } from './key-uses.ts';
import { connectionOptions, type ProxyOptions } from './proxy-options.ts';
import { type SelfService, selfServiceSteps } from './self-service.ts';
import { authenticate } from './steps/authenticate.ts';
import { CrossOrigin, cors } from './steps/cors.ts';
import { type ForwardOptions, forward } from './steps/forward.ts';
import { limit, reserve, settle } from './steps/limit.ts';
import { type ExchangeSummary, record, summaryOf } from './steps/record.ts';
import { sendRejection } from './steps/send-rejection.ts';
import { forwardUpgrade, responseOn } from './steps/upgrade.ts';
import { Tunnels } from './tunnels/tunnels.ts';

/** The proxied side of the gateway. */
export interface Proxy {
  /** Owns the response; never throws. */
  handle(req: IncomingMessage, res: RawHeadResponse, head: ParsedRequest): void;
  /** A WebSocket upgrade. `firstBytes` is what the client sent after its head. Owns the socket; never throws. */
  upgrade(req: IncomingMessage, socket: Socket, firstBytes: Buffer, head: ParsedRequest): void;
  /** Makes the handler of requests about the presented key itself, which owns the response and never throws. */
  selfService(service: SelfService): Proxy['handle'];
  /** To be called when the drain time is over, before connections are cut: ends upgrades, and what is cut counts as `unavailable`. */
  endDrain(): void;
  /** Requests with a backend connection, requests that wait for one, and switched connections, now. */
  readonly backendLoad: { readonly busy: number; readonly waiting: number; readonly tunnels: number };
  /** Places with the backend that are taken now: those of `backendLoad`, and those of requests that are still being decided. */
  readonly backendPlaces: number;
  /** Requests whose response is not over. */
  readonly inFlight: number;
  /** Connections to the backend that were made since the start, those of upgrades included. */
  readonly backendConnects: number;
  readonly counters: ProxyCounters;
  /**
   * To be called for each key that changed: ends its switched connections and long responses, within a second, if the key may no longer be
   * used.
   */
  recheckUsesOf(keyId: string): void;
  /** The copies of keys that have switched connections or long responses. */
  readonly usedKeys: readonly KeySnapshot[];
  /** To be called when changes may have been missed: does the same for all these keys. */
  recheckUses(): void;
  /** Closes the connections to the backend; requests in progress fail. */
  destroy(): void;
}

/** What the steps share. */
interface Parts {
  readonly pool: BackendPool;
  readonly dedicated: DedicatedConnections;
  readonly keyUses: KeyUses;
  readonly tunnels: Tunnels;
  readonly counters: ProxyCounters;
  readonly crossOrigin: CrossOrigin;
  /** The bytes that clients of upgrades sent after their heads. */
  readonly firstBytes: WeakMap<IncomingMessage, Buffer>;
}

/** The places with the backend, and the step that forwards. */
interface BackendSide {
  readonly kind: PlaceKind;
  readonly connections: BackendConnections;
  readonly last: Step;
}

/**
 * The steps that decide about a request, in their order. Each passes the exchange on or gives it a response. A request that is to be
 * forwarded reserves a place with the backend before it is counted.
 */
export function decisionSteps(
  options: ProxyOptions,
  crossOrigin: CrossOrigin,
  reserving: readonly Step[] = [],
): readonly Step[] {
  const keyOptions = { ...options, crossOrigin };
  return [cors(crossOrigin), authenticate(keyOptions), ...reserving, limit(keyOptions), record(options)];
}

/** The steps of a request or an upgrade. */
function pipelineSteps(
  options: ProxyOptions,
  { counters, crossOrigin }: Parts,
  { kind, connections, last }: BackendSide,
): readonly Step[] {
  const { onOverloaded } = counters;
  return [
    ...decisionSteps(options, crossOrigin, [reserve({ ...options, connections, kind, onOverloaded })]),
    settle(options.costSettler),
    sendRejection(),
    last,
  ];
}

/** The only step where there is no backend. */
const nothingHere: Step = (exchange) =>
  exchange.reject(new TollgateError('not_found', 'There is nothing at this path.'));

function requestSteps(options: ProxyOptions, parts: Parts, call: ForwardOptions): readonly Step[] {
  return pipelineSteps(options, parts, { kind: 'request', connections: parts.pool, last: forward(call) });
}

function upgradeSteps(options: ProxyOptions, parts: Parts, call: ForwardOptions): readonly Step[] {
  const { dedicated, tunnels, firstBytes } = parts;
  const firstBytesOf = ({ req }: Exchange): Buffer => firstBytes.get(req) ?? Buffer.alloc(0);
  const last = forwardUpgrade({ ...call, tunnels, idleMs: options.upgradeIdleMs, firstBytesOf });
  return pipelineSteps(options, parts, { kind: 'upgrade', connections: dedicated, last });
}

function sharedParts(options: ProxyOptions): Parts {
  const { clock } = options;
  const backend = connectionOptions(options);
  const keyUses = new KeyUses(options.keys, clock);
  return {
    pool: new BackendPool({
      ...{ ...backend, clock },
      connections: options.backendConnections,
      connectionsPerKey: options.backendConnectionsPerKey,
      waiting: options.backendWaiting,
    }),
    dedicated: new DedicatedConnections({
      ...backend,
      connections: options.maxUpgrades,
      connectionsPerKey: options.upgradesPerKey,
    }),
    keyUses,
    tunnels: new Tunnels(keyUses),
    counters: new ProxyCounters(),
    crossOrigin: new CrossOrigin(options),
    firstBytes: new WeakMap(),
  };
}

/** Builds the pipeline of a proxied request, and that of an upgrade. */
export function createProxy(options: ProxyOptions): Proxy {
  const parts = sharedParts(options);
  const { backendUrl } = options;
  const call = backendUrl && callOptions({ ...options, backendUrl }, parts);
  const steps = call === null ? [nothingHere] : requestSteps(options, parts, call);
  const stepsOfUpgrades = call === null ? [nothingHere] : upgradeSteps(options, parts, call);
  const run = exchangeRunner(options, parts.counters);
  const upgrading = new Set<Socket>();
  const { pool, dedicated, keyUses, tunnels, counters } = parts;
  return {
    handle: (req, res, head) => run(steps, req, res, head),
    upgrade(req, socket, bytes, head) {
      upgrading.add(socket);
      socket.once('close', () => upgrading.delete(socket));
      parts.firstBytes.set(req, bytes);
      run(stepsOfUpgrades, req, responseOn(socket, req), head);
    },
    selfService(service) {
      const own = selfServiceSteps(options, parts.crossOrigin, service);
      const observe = (summary: ExchangeSummary) => service.observe(summary);
      const runOwn = exchangeRunner({ ...options, tracing: undefined, observe }, parts.counters);
      return (req, res, head) => runOwn(own, req, res, head);
    },
    endDrain() {
      counters.endDrain();
      for (const socket of upgrading) socket.destroy();
    },
    recheckUsesOf: (keyId) => keyUses.recheck(keyId),
    recheckUses: () => keyUses.recheckAll(),
    get usedKeys() {
      return keyUses.copies;
    },
    get backendLoad() {
      return { busy: pool.busyCount, waiting: pool.waitingCount, tunnels: tunnels.size };
    },
    get backendPlaces() {
      return pool.takenCount + dedicated.takenCount;
    },
    get inFlight() {
      return counters.inFlight;
    },
    get backendConnects() {
      return pool.connects + dedicated.connects;
    },
    counters,
    destroy() {
      pool.destroy();
      dedicated.destroy();
    },
  };
}

function callOptions(
  options: ProxyOptions & Pick<ForwardOptions, 'backendUrl'>,
  { keyUses, counters }: Parts,
): ForwardOptions {
  const { backendUrl, backendTimeoutMs, clock } = options;
  const rateWatches: DeadlineQueue<RateWatch> = new DeadlineQueue(clock, (watch) =>
    watch.judge(rateWatches, clock.monotonicMs()),
  );
  return {
    ...options,
    ...minimumBodyRates(options),
    deadlines: new DeadlineQueue<BackendCall>(clock, (late) => late.checkDeadline()),
    arriving: new DeadlineQueue<BackendCall>(clock, (call) => call.becomeLong()),
    keyUses,
    rateWatches,
    responses: new ResponseBatcher(),
    onTooSlow: counters.onTooSlow,
    host: backendUrl.host,
    basePath: backendUrl.pathname.replace(/\/+$/, ''),
    timeoutMs: backendTimeoutMs,
  };
}

type Run = (steps: readonly Step[], req: IncomingMessage, res: RawHeadResponse, head: ParsedRequest) => void;

/** Takes requests through the steps, each as an exchange of this class, and reports each once, when its response is over. */
export function exchangeRunner(
  options: ProxyOptions,
  counters: ProxyCounters,
  ExchangeClass: typeof Exchange = Exchange,
): Run {
  const { clock, requestIds, tracing, observe, onFault } = options;
  return (steps, req, res, head) => {
    const startedAtMs = clock.monotonicMs();
    const exchange = new ExchangeClass(steps, {
      req,
      res,
      head,
      requestId: requestIds.idOf(req),
      startedAtMs,
    });
    res.owner = exchange;
    if (tracing !== undefined) exchange.trace = tracing.begin(req, startedAtMs);
    counters.inFlight += 1;
    res.on('close', () => {
      counters.inFlight -= 1;
      exchange.isClosed = true;
      exchange.closedAtMs = clock.monotonicMs();
      try {
        exchange.withdraw();
        exchange.onClosed?.(exchange);
        const summary = summaryOf(exchange, counters.unsentOutcome);
        exchange.trace?.end(summary);
        observe(summary);
      } catch (fault) {
        onFault(fault);
      }
    });
    exchange.next();
  };
}

/** Counts of the proxied side, for the metrics. */
export class ProxyCounters {
  /** Requests whose response is not over. */
  inFlight = 0;
  /** Since the start: requests and upgrades that got no place with the backend, by the bound that was reached. */
  readonly overloaded: Record<PlaceKind, Record<NoPlace, number>> = {
    request: { full: 0, key_full: 0 },
    upgrade: { full: 0, key_full: 0 },
  };
  /** Since the start: exchanges that were ended because a body passed too slowly. */
  readonly tooSlow = { upload: 0, download: 0 };

  /** The outcome of exchanges that end from now on without a complete response, for no other reason. */
  unsentOutcome: Outcome = 'client_gone';

  /** From now on the gateway itself cuts what is not complete. */
  endDrain(): void {
    this.unsentOutcome = 'unavailable';
  }

  readonly onOverloaded = (kind: PlaceKind, reason: NoPlace): void => {
    this.overloaded[kind][reason] += 1;
  };

  readonly onTooSlow = (direction: 'upload' | 'download'): void => {
    this.tooSlow[direction] += 1;
  };
}
