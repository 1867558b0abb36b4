import type { Logger } from '../platform/logger.ts';
import { managementOutcomeOf, type Outcome } from './outcomes.ts';

/** A request as a log line shows it. Times in milliseconds. */
export interface LoggedRequest {
  readonly requestId: string;
  readonly traceId?: string | undefined;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  /** 0 when the client left before there was a response. */
  readonly status: number;
  readonly durationMs: number;
}

/** Why the gateway or the backend failed, as a log line shows it. */
interface LoggedFailure {
  readonly cause: string | undefined;
  /** The store that did not respond; undefined: it was not for a store. */
  readonly store: string | undefined;
  /** How often the backend was tried. */
  readonly attempts: number;
}

/** A proxied request as a log line shows it. */
export interface LoggedProxiedRequest extends LoggedRequest {
  readonly outcome: Outcome;
  /** Of the error that the gateway sent; undefined when it sent none. */
  readonly errorCode: string | undefined;
  /** Undefined when it was not authenticated. */
  readonly keyId: string | undefined;
  /** Undefined when nothing was decided. */
  readonly decision: { readonly kind: string; readonly degraded: boolean } | undefined;
  /** Undefined when neither the gateway nor the backend failed. */
  readonly failure: LoggedFailure | undefined;
  /** The limit that rejected it; undefined when none did. */
  readonly limitId: string | undefined;
  /** Shadow limits that would have rejected it, although it was allowed. */
  readonly shadowLimitIds: readonly string[];
  readonly bodyBytes: number;
  readonly gatewayMs: number;
}

/** What it says besides of a management request. */
export interface LoggedManagementRequest extends LoggedRequest {
  readonly notes: { readonly errorCode?: string; readonly operation?: string; readonly actor?: string };
}

export interface AccessLogOptions {
  /** Which part of the requests is logged: above 0, 1 = all. */
  readonly rate: number;
  readonly lines: Logger;
  /** Host and port of the backend. */
  readonly backend: string;
  /** Makes a path fit to be written down. */
  readonly mask: (path: string) => string;
}

const SERVER_ERROR = 500;
/** Of a path: a line must stay short enough to be written at once, also beside other writers. Characters. */
const PATH_LIMIT = 1024;

/**
 * One line per request. Of a sample every line is as likely as any other, except that failures of the gateway or the backend are always
 * there. Lines are made of named fields, of which only the method, the path (masked, without query) and the request id are the client's.
 */
export class AccessLog {
  readonly #options: AccessLogOptions;
  /** How much of the next line is saved up. */
  #credit = 0;

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  /** A proxied request's response is over. */
  proxied(request: LoggedProxiedRequest): void {
    if (!this.#isChosen(request.status)) return;
    const { outcome, errorCode, keyId, decision, failure, limitId, shadowLimitIds, bodyBytes, gatewayMs } =
      request;
    this.#write(request, {
      route: 'backend',
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

  /** The response to a management request, or to one of a key about itself, is over. */
  managed(request: LoggedManagementRequest, route: 'management' | 'self-service'): void {
    if (!this.#isChosen(request.status)) return;
    const { operation, errorCode, actor } = request.notes;
    const outcome = managementOutcomeOf(request.status, actor);
    this.#write(request, { route, operation, outcome, errorCode, actor });
  }

  /** A request was rejected for its head, of which nothing but its id is repeated. */
  rejected(requestId: string, status: number, errorCode: string): void {
    const outcome: Outcome = 'invalid_request';
    if (this.#isChosen(status))
      this.#options.lines.info({ requestId, status, outcome, errorCode }, 'request');
  }

  #isChosen(status: number): boolean {
    this.#credit += this.#options.rate;
    if (this.#credit >= 1) {
      this.#credit -= 1;
      return true;
    }
    return status >= SERVER_ERROR;
  }

  /** Where the cause is to be looked for. */
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

/** To microseconds. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
