import type { Logger } from '../platform/logger.ts';
import { managementOutcomeOf, type Outcome, type Route } from './outcomes.ts';

/** The fields of a request in a log line. Times are in milliseconds. */
export interface LoggedRequest {
  readonly requestId: string;
  readonly traceId?: string | undefined;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** 0 if the client disconnected before there was a response. */
  readonly status: number;
  readonly durationMs: number;
}

/** The reason in a log line for a failure of the gateway or the backend. */
interface LoggedFailure {
  readonly cause: string | undefined;
  /** The store that did not respond; undefined if the failure has another reason. */
  readonly store: string | undefined;
  /** The number of attempts to reach the backend. */
  readonly attempts: number;
}

/** The fields of a proxied request in a log line. */
export interface LoggedProxiedRequest extends LoggedRequest {
  readonly outcome: Outcome;
  /** The code of the error that the gateway sent, or for which it cut the response to a slow client; undefined if there was none. */
  readonly errorCode: string | undefined;
  /** Undefined if the request was not authenticated. */
  readonly keyId: string | undefined;
  /** Undefined if no limiter decided about the request. */
  readonly decision: { readonly kind: string; readonly degraded: boolean } | undefined;
  /** Undefined if neither the gateway nor the backend failed. */
  readonly failure: LoggedFailure | undefined;
  /** The limit that rejected the request; undefined if none did. */
  readonly limitId: string | undefined;
  /** Shadow limits that would have rejected the request. It was allowed. */
  readonly shadowLimitIds: readonly string[];
  readonly bodyBytes: number;
  readonly gatewayMs: number;
}

/** The fields of a management request in a log line. */
export interface LoggedManagementRequest extends LoggedRequest {
  readonly notes: { readonly errorCode?: string; readonly operation?: string; readonly actor?: string };
}

/** The fields of a request that was rejected before the first step in a log line. */
interface LoggedRejectedRequest extends Pick<LoggedRequest, 'requestId' | 'status'> {
  readonly outcome: Outcome;
  readonly errorCode: string;
  /** Undefined at the public port: what the request was for may not be known. */
  readonly route: Route | 'management' | undefined;
}

export interface AccessLogOptions {
  /** The fraction of requests that is logged: above 0, and 1 for all. */
  readonly rate: number;
  /** The part of a line with which the count for the sample begins, by chance: from 0 to below 1. */
  readonly credit: number;
  readonly lines: Logger;
  /** Host and port of the backend. */
  readonly backend: string;
  /** Masks secrets in a path. */
  readonly mask: (path: string) => string;
}

const SERVER_ERROR = 500;
/** The longest path in a line, in characters: a line must fit into one atomic write, because others write to the same pipe. */
const PATH_LIMIT = 1024;

/**
 * Writes one line for each request, or for a sample. Each request is equally likely to be in the sample, but failures of the gateway or the
 * backend are always logged. Only the method, the path (masked, without query) and the request id can come from the client.
 */
export class AccessLog {
  readonly #options: AccessLogOptions;
  /** The fraction of a line that the requests so far have earned. A line is written when it reaches 1. */
  #credit: number;

  constructor(options: AccessLogOptions) {
    this.#options = options;
    this.#credit = options.credit;
  }

  /** Called when the response to a decided request has ended. */
  proxied(request: LoggedProxiedRequest, route: Route = 'backend'): void {
    if (!this.#isChosen(request.status)) return;
    const { outcome, errorCode, keyId, decision, failure, limitId, shadowLimitIds, bodyBytes, gatewayMs } =
      request;
    this.#write(request, {
      route,
      outcome,
      errorCode,
      cause: failure?.cause,
      ...this.#failedAt(failure),
      keyId,
      decision: decision?.kind,
      degraded: decision?.degraded === true ? true : undefined,
      limitId,
      shadowLimitIds: shadowLimitIds.length === 0 ? undefined : shadowLimitIds,
      bytes: bodyBytes,
      gatewayMs: rounded(gatewayMs),
    });
  }

  /** Called when the response to a management or a self-service request has ended. */
  managed(request: LoggedManagementRequest, route: 'management' | 'self-service'): void {
    if (!this.#isChosen(request.status)) return;
    const { operation, errorCode, actor } = request.notes;
    const outcome = managementOutcomeOf(request.status, actor);
    this.#write(request, { route, operation, outcome, errorCode, actor });
  }

  /** Called when a request was rejected before the first step. The line repeats nothing of it but the request id. */
  rejected(request: LoggedRejectedRequest): void {
    const { requestId, status, route, outcome, errorCode } = request;
    if (this.#isChosen(status))
      this.#options.lines.info({ requestId, status, route, outcome, errorCode }, 'request');
  }

  #isChosen(status: number): boolean {
    this.#credit += this.#options.rate;
    if (this.#credit >= 1) {
      this.#credit -= 1;
      return true;
    }
    return status >= SERVER_ERROR;
  }

  /** The store or the backend that failed. */
  #failedAt(failure: LoggedFailure | undefined): object {
    if (failure === undefined) return {};
    const { store, attempts } = failure;
    return store === undefined ? { backend: this.#options.backend, attempts } : { store };
  }

  #write({ requestId, traceId, method, path, status, durationMs }: LoggedRequest, fields: object): void {
    this.#options.lines.info(
      {
        requestId,
        traceId,
        method,
        path: this.#options.mask(path).slice(0, PATH_LIMIT),
        status,
        durationMs: rounded(durationMs),
        ...fields,
      },
      'request',
    );
  }
}

/** Rounds to microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
