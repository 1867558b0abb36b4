import type { TollgateError } from '../errors.ts';
import { errorResponse } from '../http/errors/error-responses.ts';
import type { ServedRequest } from '../http/with-request-id.ts';
import { PORTAL_OPERATION } from '../management/built-page.ts';
import { CONSOLE_OPERATION } from '../management/console-files.ts';
import { DOCUMENTED_ENDPOINTS } from '../management/endpoints.ts';
import { HANDOVER_PAGE_OPERATION } from '../management/handovers/handover-app.ts';
import { SIGN_IN_OPERATION } from '../management/sign-in/sign-in-app.ts';
import { AccessLog } from '../observability/access-log.ts';
import { type KeyCounts, KeyMetrics } from '../observability/key-metrics.ts';
import { outcomeOfError, type Route } from '../observability/outcomes.ts';
import type { Reading } from '../observability/reading.ts';
import { RequestMetrics } from '../observability/request-metrics.ts';
import type { BufferedLogger } from '../platform/buffered-logger.ts';
import type { Platform } from '../platform/platform.ts';
import type { ExchangeSummary } from '../proxy/steps/record.ts';
import type { Settings } from '../settings/settings.ts';

/** Observes requests that have ended: for the metrics, and for the access log if it is on. */
export interface RequestObservers {
  readonly metrics: RequestMetrics;
  /** Metrics that exist only when a setting asks for them. */
  readonly readings: readonly Reading[];
  /** What was counted of the busiest keys since the last call, for a process that shows several replicas. */
  takeKeyCounts(): KeyCounts;
  /** Whether the last requests found no connection to the backend. */
  readonly isBackendUnreachable: boolean;
  proxied(summary: ExchangeSummary): void;
  /** A request that was rejected for its head, or a call of another gateway for its form or its token. */
  rejected(error: TollgateError, requestId: string, route?: Route | 'management'): void;
  /** A request that was only decided, for another gateway. */
  authorized(summary: ExchangeSummary): void;
  /** A secret that was verified; its request is observed as one of management. */
  verified(summary: ExchangeSummary): void;
  managed(request: ServedRequest): void;
  /** `operation` is undefined if the request reached no endpoint. */
  selfServed(summary: ExchangeSummary, operation: string | undefined): void;
  /** Writes buffered log lines. Never rejects. */
  flush(): Promise<void>;
}

/** What the observers need besides the settings. */
export interface ObserverOptions extends Pick<Platform, 'clock' | 'random' | 'log'> {
  readonly bufferedLogger: () => BufferedLogger;
  /** Masks secrets in a path. */
  readonly mask: (path: string) => string;
}

/** Builds the observers that the settings turn on. */
export function observeRequests(
  {
    accessLog: rate,
    metricsPerKey,
    backendUrl,
  }: Pick<Settings, 'accessLog' | 'metricsPerKey' | 'backendUrl'>,
  { clock, random, log, bufferedLogger, mask }: ObserverOptions,
): RequestObservers {
  const metrics = new RequestMetrics([
    ...DOCUMENTED_ENDPOINTS.map(({ operationId }) => operationId),
    CONSOLE_OPERATION,
    HANDOVER_PAGE_OPERATION,
    SIGN_IN_OPERATION,
    PORTAL_OPERATION,
  ]);
  const keys = metricsPerKey === 0 ? undefined : new KeyMetrics(metricsPerKey, () => clock.monotonicMs());
  const backend = backendUrl?.host ?? '';
  const reachability = new BackendReachability(backend, { log, clock });
  const buffered = rate > 0 && log.isLevelEnabled('info') ? bufferedLogger() : undefined;
  const credit = random.bytes(4).readUInt32BE() / 2 ** 32;
  const accessLog = buffered && new AccessLog({ rate, credit, lines: buffered.lines, backend, mask });
  const decided = (summary: ExchangeSummary, route: Route): void => {
    metrics.observe(summary.outcome, summary, route);
    if (summary.decision !== undefined) metrics.decided(summary.decision);
    if (keys !== undefined && summary.keyId !== undefined) keys.observe(summary.keyId, summary.outcome);
  };
  return {
    metrics,
    readings: keys === undefined ? [] : [keys.reading()],
    takeKeyCounts: () => keys?.take() ?? [],
    get isBackendUnreachable() {
      return reachability.isUnreachable;
    },
    proxied(summary) {
      decided(summary, 'backend');
      reachability.observe(summary);
      accessLog?.proxied(summary);
    },
    rejected(error, requestId, route) {
      const { status } = errorResponse(error);
      const outcome = outcomeOfError(error.code);
      if (route === 'management') metrics.rejectedManagement();
      else metrics.rejected(outcome, status, route);
      accessLog?.rejected({ requestId, status, route, outcome, errorCode: error.code });
    },
    authorized(summary) {
      decided(summary, 'authorize');
      accessLog?.proxied(summary, 'authorize');
    },
    verified(summary) {
      decided(summary, 'authorize');
    },
    managed(request) {
      metrics.managed(request.notes, request.status);
      accessLog?.managed(request, 'management');
    },
    selfServed(summary, operation) {
      const notes = notesOf(summary, operation);
      metrics.managed(notes, summary.status);
      accessLog?.managed({ ...summary, notes }, 'self-service');
    },
    async flush() {
      await buffered?.flush();
    },
  };
}

/** The notes of a self-service request for the access log. Its actor is the consumer's key. */
function notesOf({ keyId, errorCode }: ExchangeSummary, operation: string | undefined) {
  return {
    ...(operation !== undefined && { operation }),
    ...(errorCode !== undefined && { errorCode }),
    ...(keyId !== undefined && { actor: keyId }),
  };
}

/** The part of an ended request that shows whether the backend could be reached. */
interface BackendAttempt {
  readonly outcome: string;
  readonly failure: { readonly cause: string | undefined; readonly isUnreachable: boolean } | undefined;
}

/** After a failed connection, requests count as a sign of a reachable backend only when this time has passed. Milliseconds. */
const CALM_MS = 1000;

/** Logs when the backend becomes unreachable, and when it is reachable again: the lines of requests may be turned off, or many. */
class BackendReachability {
  readonly #log: Platform['log'];
  readonly #clock: Platform['clock'];
  readonly #backend: string;
  #isUnreachable = false;
  #failedAtMs = 0;

  /** `backend` is its host and port. */
  constructor(backend: string, { log, clock }: Pick<Platform, 'clock' | 'log'>) {
    this.#backend = backend;
    this.#log = log;
    this.#clock = clock;
  }

  get isUnreachable(): boolean {
    return this.#isUnreachable;
  }

  observe({ outcome, failure }: BackendAttempt): void {
    if (failure?.isUnreachable === true) this.#failed(failure.cause);
    else if (this.#isUnreachable && outcome === 'forwarded') this.#succeeded();
  }

  #failed(cause: string | undefined): void {
    this.#failedAtMs = this.#clock.monotonicMs();
    if (this.#isUnreachable) return;
    this.#isUnreachable = true;
    this.#log.error(
      { event: 'backend_unreachable', backend: this.#backend, cause },
      'there is no connection to the backend',
    );
  }

  #succeeded(): void {
    if (this.#clock.monotonicMs() - this.#failedAtMs < CALM_MS) return;
    this.#isUnreachable = false;
    this.#log.info(
      { event: 'backend_reachable', backend: this.#backend },
      'the backend can be reached again',
    );
  }
}
