import type { Logger } from '../platform/logger.ts';

/** What a log line says of a request that is over. Times in milliseconds. */
export interface LoggedRequest {
  readonly requestId: string;
  readonly traceId?: string | undefined;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  /** 0 when the client left before there was an answer. */
  readonly status: number;
  readonly durationMs: number;
}

/** What it says besides of a proxied one. */
export interface LoggedProxiedRequest extends LoggedRequest {
  readonly outcome: string;
  /** Undefined when it was not authenticated. */
  readonly keyId: string | undefined;
  /** Undefined when nothing was decided. */
  readonly decision: { readonly kind: string; readonly degraded: boolean } | undefined;
  readonly bodyBytes: number;
  readonly gatewayMs: number;
}

export interface AccessLogOptions {
  /** Which part of the requests is logged: above 0, 1 = all. */
  readonly rate: number;
  readonly lines: Logger;
  /** Makes a path fit to be written down. */
  readonly mask: (path: string) => string;
}

const SERVER_ERROR = 500;
/** Of a path: a line must stay short enough to be written at once, whoever else writes. Characters. */
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

  /** A proxied request's answer is over. */
  proxied(request: LoggedProxiedRequest): void {
    if (!this.#isChosen(request.status)) return;
    const { outcome, keyId, decision, bodyBytes, gatewayMs } = request;
    this.#write(request, {
      route: 'backend',
      outcome,
      keyId,
      decision: decision?.kind,
      degraded: decision?.degraded === true ? true : undefined,
      bytes: bodyBytes,
      gatewayMs: rounded(gatewayMs),
    });
  }

  /** A management request's answer is over. */
  managed(request: LoggedRequest): void {
    if (this.#isChosen(request.status)) this.#write(request, { route: 'management' });
  }

  /** A request was refused for its head, of which nothing is repeated. */
  refused(status: number, outcome: string): void {
    if (this.#isChosen(status)) this.#options.lines.info({ status, outcome }, 'request');
  }

  #isChosen(status: number): boolean {
    this.#credit += this.#options.rate;
    if (this.#credit >= 1) {
      this.#credit -= 1;
      return true;
    }
    return status >= SERVER_ERROR;
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
