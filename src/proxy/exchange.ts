import type { IncomingMessage } from 'node:http';
import type { ErrorCode, TollgateError } from '../errors.ts';
import { answerErrorWith } from '../http/answer-error.ts';
import { errorAnswer } from '../http/error-answers.ts';
import { fieldLine, type LineResponse } from '../http/line-response.ts';
import type { RequestHead } from '../http/request-head.ts';
import type { KeyEntry } from '../keys/key-directory.ts';
import type { Decision } from '../limiter/rate-limiter.ts';
import type { RequestTrace } from '../observability/tracing.ts';
import { rateLimitLines } from './rate-limit-headers.ts';

/** One step of the pipeline. It either calls `exchange.next()`, once and possibly later, or answers. Never throws. */
export type Step = (exchange: Exchange) => void;

/** A decision that lets the request be answered: admitted, denied or unlimited. */
export type LimitDecision = Exclude<Decision, { kind: 'stale' | 'unavailable' }>;

/**
 * How a request ended: the backend's answer reached the client, or was cut short by one of the two; the gateway answered a preflight
 * or a denial; or the code of the error that it answered.
 */
export type Outcome =
  | 'forwarded'
  | 'truncated'
  | 'client_gone'
  | 'cors_preflight'
  | 'rate_limited'
  | ErrorCode;

/** What is working for a client and must stop when the client leaves. */
export interface Abandonable {
  abandon(): void;
}

/**
 * One proxied request on its way through the pipeline, and all that the steps learn of it. The fields are written by the steps: it is
 * the one object that every request makes, so it is changed in place.
 */
export class Exchange {
  readonly req: IncomingMessage;
  readonly res: LineResponse;
  readonly head: RequestHead;
  /** Names the request towards the client, the backend and the log. */
  readonly requestId: string;
  /** Milliseconds of the monotonic clock. */
  readonly startedAtMs: number;
  /** The presented secret, once it has the form of one. */
  secret = '';
  /** The key, once the request is authenticated. */
  entry: KeyEntry | undefined = undefined;
  /** True while the key's copy was read from the record store for this very request. */
  isFresh = false;
  decision: LimitDecision | undefined = undefined;
  /** Why the request will not be forwarded although it is authenticated. */
  refusal: TollgateError | undefined = undefined;
  outcome: Outcome = 'forwarded';
  /** The gateway allows the page that asks to read the answer, whatever the backend says. */
  isOriginAllowed = false;
  /** Lines of the fields for cross-origin callers. */
  corsLines = '';
  /** When the backend was first asked, by the monotonic clock; null = never. */
  forwardedAtMs: number | null = null;
  /** When the backend's part was over, by the monotonic clock; null = never or not yet. */
  backendEndedAtMs: number | null = null;
  /** Bytes of the answer's body that came from the backend. */
  bodyBytes = 0;
  backend: Abandonable | undefined = undefined;
  /** Where the request is in a trace; undefined while tracing is off. */
  trace: RequestTrace | undefined = undefined;
  /** The connection was switched to another protocol: a complete answer that the response object never wrote. */
  isSwitched = false;
  /** The client's side is over: nothing can be answered any more. */
  isClosed = false;
  /** When that was, by the monotonic clock. */
  closedAtMs = 0;
  /** Called once when it is. Not a listener of `res`, because one would have to be made for each request. */
  onClosed: ((exchange: Exchange) => void) | undefined = undefined;
  readonly #steps: readonly Step[];
  #position = 0;

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

  /** Goes on with the next step. */
  next(): void {
    const step = this.#steps[this.#position];
    this.#position += 1;
    step?.(this);
  }

  /** Answers an error, unless an answer has begun. */
  refuse(error: TollgateError): void {
    if (this.res.headersSent) return;
    this.outcome = error.code;
    answerErrorWith(this.res, errorAnswer(error), this.ownLines());
  }

  /** Lines of the fields that the gateway adds to every answer of this exchange. */
  ownLines(): string {
    const plan = this.entry?.grant.plan;
    const limits = plan && this.decision !== undefined ? rateLimitLines(plan, this.decision) : '';
    return limits + this.corsLines + fieldLine('X-Request-Id', this.requestId);
  }
}
