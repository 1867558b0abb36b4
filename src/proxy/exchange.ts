import type { IncomingMessage } from 'node:http';
import type { ReservedPlace } from '../backend/pool/places.ts';
import { type ErrorCode, InternalError, TollgateError } from '../errors.ts';
import { cutConnection } from '../http/connections/cut-connection.ts';
import { closeAfterResponse, hasMuchToSend } from '../http/connections/unread-body.ts';
import { type ErrorResponse, errorResponse } from '../http/errors/error-responses.ts';
import { sendErrorWithLines } from '../http/errors/send-error.ts';
import { headerLine, type RawHeadResponse } from '../http/node-internals.ts';
import type { ParsedRequest } from '../http/parsed-request.ts';
import type { KeyEntry } from '../keys/cache/key-entry.ts';
import type { Decision, LimitSubject } from '../limiter/rate-limiter.ts';
import { type RequestCost, type RequestLimits, USUAL_COST } from '../limiter/request-limits.ts';
import { type Outcome, outcomeOfError } from '../observability/outcomes.ts';
import type { RequestTrace } from '../observability/tracing.ts';
import { otherReadings, type PathCase } from '../paths/path-readings.ts';
import { keyExpiryLine, rateLimitLines } from './headers/response-headers.ts';

/** One step of the pipeline. It either calls `exchange.next()`, once and possibly later, or responds. */
export type Step = (exchange: Exchange) => void;

/** A final decision of the limiter: allowed, limited or unlimited. */
export type LimitDecision = Exclude<Decision, { kind: 'stale' | 'unavailable' }>;

/** A response of the gateway without a body. `headers` is a flat list; `lines` are made of `headerLine`s. */
export interface EmptyResponse {
  readonly status: number;
  readonly outcome: Outcome;
  readonly headers: string[];
  readonly lines: string;
}

/** Work for a client that must stop when the client leaves or gets another response. */
export interface Abandonable {
  abandon(): void;
}

/**
 * One proxied request on its way through the pipeline, and what the steps find out about it. The steps write its properties: it is
 * changed in place, because every request creates one.
 */
export class Exchange {
  readonly req: IncomingMessage;
  readonly res: RawHeadResponse;
  readonly head: ParsedRequest;
  /** Identifies the request to the client, to the backend and in the log. */
  readonly requestId: string;
  /** Milliseconds of the monotonic clock. */
  readonly startedAtMs: number;
  /** The presented secret, once it has the form of one. */
  secret = '';
  /** The key, once the request is authenticated. */
  entry: KeyEntry | undefined = undefined;
  /** The copy of the key was read from the record store for this very request. */
  isFresh = false;
  /** How often the limiter found the copy stale, and it was read again. */
  reloads = 0;
  decision: LimitDecision | undefined = undefined;
  /** The subject of a decision with a reserved cost, because only the backend knows the real one. */
  reserved: LimitSubject | undefined = undefined;
  /** What the request costs if it is allowed, before its backend reports another cost. */
  units = 1;
  /** The request's cost as the backend reported it, not parsed yet. */
  reportedCost: string | undefined = undefined;
  /** Why the request will not be forwarded although it is authenticated. */
  rejection: TollgateError | undefined = undefined;
  /** What went wrong, with its `cause` for the log: the error that the client got, or why its response was cut. */
  error: TollgateError | undefined = undefined;
  outcome: Outcome = 'forwarded';
  /** Code of the error that the gateway sent, or for which it cut the response, see `cutAs`; undefined when there was none. */
  errorCode: ErrorCode | undefined = undefined;
  /** The gateway allows the requesting page to read the response, in place of the backend's CORS headers. */
  isOriginAllowed = false;
  /** CORS header lines of the response. */
  corsLines = '';
  /** The reserved place with the backend, until the backend call uses it. */
  place: ReservedPlace | undefined = undefined;
  /** When the request was sent to the backend, by the monotonic clock; null = never. */
  forwardedAtMs: number | null = null;
  /** How often the request was sent to the backend. */
  attempts = 0;
  /** When the backend's part ended, by the monotonic clock; null = never or not yet. */
  backendEndedAtMs: number | null = null;
  /** The request's body on its way to the backend; undefined while it has none. */
  requestBody: { readonly bytes: number } | undefined = undefined;
  /** Bytes of the response's body that came from the backend. */
  bodyBytes = 0;
  backend: Abandonable | undefined = undefined;
  /** Makes the response of an error: its status, headers and body. */
  formatError: (error: TollgateError, req: IncomingMessage) => ErrorResponse = errorResponse;
  /** Where the request is in a trace; undefined while tracing is off. */
  trace: RequestTrace | undefined = undefined;
  /** The connection was switched to another protocol: the response is complete, although `res` never wrote it. */
  isSwitched = false;
  /** The gateway has cut the response: `outcome` says why. */
  isCut = false;
  /** The client's side has closed: nothing can be sent any more. */
  isClosed = false;
  /** When the client's side closed, by the monotonic clock; 0 = it has not. */
  closedAtMs = 0;
  /** Called once when the client's side has closed. Not a listener of `res`, which would be one more function for each request. */
  onClosed: ((exchange: Exchange) => void) | undefined = undefined;
  readonly #steps: readonly Step[];
  #position = 0;
  #otherReadings: readonly string[] | undefined = undefined;

  constructor(
    steps: readonly Step[],
    {
      req,
      res,
      head,
      requestId,
      startedAtMs,
    }: Pick<Exchange, 'req' | 'res' | 'head' | 'requestId' | 'startedAtMs'>,
  ) {
    this.#steps = steps;
    this.req = req;
    this.res = res;
    this.head = head;
    this.requestId = requestId;
    this.startedAtMs = startedAtMs;
  }

  /** A response has begun, or none is possible any more. */
  get hasResponse(): boolean {
    return this.isClosed || this.isSwitched || this.res.headersSent;
  }

  /** The status that was sent to the client; 0 when the client left before there was one. */
  get status(): number {
    if (this.isSwitched) return 101;
    return this.res.headersSent ? this.res.statusCode : 0;
  }

  /** The client has the whole response. A switched connection has it. */
  get isSent(): boolean {
    return this.isSwitched || this.res.writableFinished;
  }

  /** What the request costs under a plan, or without one (null); `others` are the other readings of its path. */
  costIn(limits: RequestLimits | null, others: readonly string[]): RequestCost {
    return limits?.costOf(this.req.method ?? '', this.head.path, others) ?? USUAL_COST;
  }

  /** The other readings of the path, made at most once. */
  otherReadings(pathCase: PathCase): readonly string[] {
    this.#otherReadings ??= otherReadings(this.head.path, pathCase);
    return this.#otherReadings;
  }

  /** Runs the next step. If the step throws, this request fails with a 500 and no other is affected. */
  next(): void {
    const step = this.#steps[this.#position];
    this.#position += 1;
    try {
      step?.(this);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Responds with an error, unless a response has begun. */
  reject(error: TollgateError): void {
    if (this.hasResponse) return;
    this.error = error;
    try {
      this.respondWith(this.formatError(error, this.req), outcomeOfError(error.code));
      this.errorCode = error.code;
    } catch (fault) {
      this.error = new InternalError(fault);
      this.cut();
    }
  }

  /** Sends a response of the gateway, unless one has begun, and cancels the backend request. */
  respondWith(response: ErrorResponse, outcome: Outcome): void {
    if (this.hasResponse) return;
    this.withdraw();
    this.outcome = outcome;
    sendErrorWithLines(this.res, response, this.ownLines());
  }

  /** Sends a response without a body, unless one has begun. */
  respondEmpty({ status, outcome, headers, lines }: EmptyResponse): void {
    if (this.hasResponse) return;
    this.outcome = outcome;
    if (hasMuchToSend(this.req)) closeAfterResponse(this.res);
    this.res.writeLines(status, undefined, lines + this.ownLines(), headers);
    this.res.end();
  }

  /** Ends the exchange with an error, 500 unless `cause` is a `TollgateError`; if a response has begun, cuts the connection. */
  fail(cause: unknown): void {
    const error = cause instanceof TollgateError ? cause : new InternalError(cause);
    if (!this.hasResponse) {
      this.reject(error);
      return;
    }
    this.error = error;
    this.withdraw();
    this.cut();
  }

  /** Cuts the response for a reason that is no failure of the backend: a slow client, or a key that may no longer be used. */
  cutAs(outcome: Outcome, code: ErrorCode): void {
    this.outcome = outcome;
    this.errorCode = code;
    this.withdraw();
    this.cut();
  }

  /** Cuts the client's connection, because an orderly end could be taken for the end of the body. */
  cut(): void {
    if (this.res.destroyed) return;
    this.isCut = true;
    if (this.outcome === 'forwarded') this.outcome = 'truncated';
    cutConnection(this.req.socket);
  }

  /** Cancels the backend request and gives its place back. */
  withdraw(): void {
    const { place, backend } = this;
    this.place = undefined;
    this.backend = undefined;
    place?.cancel();
    backend?.abandon();
  }

  /** Header lines that the gateway adds to every response of this exchange. */
  ownLines(): string {
    const { entry } = this;
    const plan = entry?.snapshot.plan;
    const limits = plan && this.decision !== undefined ? rateLimitLines(plan.id, this.decision) : '';
    return (
      limits +
      (entry === undefined ? '' : keyExpiryLine(entry)) +
      this.corsLines +
      headerLine('X-Request-Id', this.requestId)
    );
  }
}
