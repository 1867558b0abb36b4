import type { ServerResponse } from 'node:http';
import type { BlockList, Socket } from 'node:net';
import { BackendError } from '../../backend/backend-error.ts';
import type { BackendConnection, ResponseHandler } from '../../backend/connection.ts';
import type { BackendJob, Ticket } from '../../backend/pool/places.ts';
import type { ReadBuffer } from '../../backend/read-buffers.ts';
import { RequestBody } from '../../backend/request-body.ts';
import { requestHead } from '../../backend/request-head.ts';
import type { ResponseHead } from '../../backend/response-head.ts';
import { TollgateError } from '../../errors.ts';
import { closeAfterResponse } from '../../http/connections/unread-body.ts';
import type { MinimumRate } from '../../http/minimum-body-rate.ts';
import type { Clock } from '../../platform/clock.ts';
import type { DeadlineQueue, Due } from '../../platform/deadline-queue.ts';
import type { Abandonable, Exchange } from '../exchange.ts';
import { reportedCostInTrailer, reportedCostOf } from '../headers/reported-cost.ts';
import { traceHeaderLines } from '../headers/request-headers.ts';
import { interimHeaders, responseHeaders } from '../headers/response-headers.ts';
import type { KeyUses } from '../key-uses.ts';
import { backendFailure, gatewayTimeout } from './backend-errors.ts';
import { LONG_MS, LongResponse } from './long-response.ts';
import { RateWatch } from './rate-watch.ts';
import { type ResponseBatcher, ResponseStream } from './response-stream.ts';

/** What a call needs besides its exchange. */
export interface BackendCallOptions {
  /** Host of the backend's URL, for the `Host` header. */
  readonly host: string;
  /** Prefix of each target: the path of the backend's URL, without a slash at its end. */
  readonly basePath: string;
  /** Timeout of the response head, from the request's start or from the last chunk of its body, whichever is later. Milliseconds. */
  readonly timeoutMs: number;
  /** The deadlines of all calls. */
  readonly deadlines: DeadlineQueue<BackendCall>;
  /** The calls whose responses did not arrive at once, by when they become long. */
  readonly arriving: DeadlineQueue<BackendCall>;
  /** Gets the long responses. */
  readonly keyUses: Pick<KeyUses, 'add' | 'delete'>;
  readonly trustedProxies: BlockList;
  readonly rateWatches: DeadlineQueue<RateWatch>;
  readonly responses: ResponseBatcher;
  /** Minimum rate of a request's body. */
  readonly uploadRate: MinimumRate;
  /** Minimum rate at which a client takes a response. */
  readonly downloadRate: MinimumRate;
  /** Called for each exchange that was ended because of its rate. */
  readonly onTooSlow: (direction: 'upload' | 'download') => void;
  readonly clock: Clock;
}

/** Safe methods: only a request with one of them may be sent a second time (RFC 9110 section 9.2.2). */
const RETRIED_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Takes over a connection that the backend has switched to another protocol. `head` is its 101. */
export type Switched = (backend: Socket, head: ResponseHead) => void;

/**
 * The backend's part of one exchange: waits for a connection, sends the request, passes on the response, and ends each side when the
 * other one ends. The connection calls the `on…` methods; the exchange calls `abandon` when its client closes or gets another response.
 * The call never gives its place back: the pool does, once the connection is idle or closed.
 */
export class BackendCall implements ResponseHandler, BackendJob, Abandonable, Due<BackendCall> {
  dueAtMs = 0;
  before: BackendCall | undefined = undefined;
  after: BackendCall | undefined = undefined;
  readonly #exchange: Exchange;
  #headerLines: string;
  readonly #options: BackendCallOptions;
  readonly #switched: Switched | undefined;
  /** The queue that the call is in. */
  #queue: DeadlineQueue<BackendCall> | undefined;
  #ticket: Ticket | undefined;
  #connection: BackendConnection | undefined;
  #body: RequestBody | undefined;
  #response: ResponseStream | undefined;
  #long: LongResponse | undefined;
  #upload: RateWatch | undefined;
  #download: RateWatch | undefined;
  #isRetry = false;
  #isOver = false;

  /**
   * `headerLines` are the headers that the backend gets, but for those of the trace. With `switched` the request asks for an upgrade to
   * WebSocket.
   */
  constructor(exchange: Exchange, headerLines: string, options: BackendCallOptions, switched?: Switched) {
    this.#exchange = exchange;
    this.#headerLines = headerLines;
    this.#options = options;
    this.#switched = switched;
  }

  /** Uses the place of the exchange. From here on the exchange always gets a response, or its connection is cut. */
  start(): void {
    const exchange = this.#exchange;
    const { place } = exchange;
    // The client may have gone meanwhile, and its place with it.
    if (exchange.hasResponse || place === undefined) return;
    exchange.place = undefined;
    exchange.backend = this;
    // A paused body is exempt from the timeouts of a slow client: the gateway holds it back.
    if (exchange.head.body !== 'none') exchange.req.pause();
    const nowMs = this.#options.clock.monotonicMs();
    this.#setDeadline(exchange.startedAtMs, nowMs);
    this.#ticket = place.request(this, nowMs);
  }

  begin(connection: BackendConnection, nowMs: number): void {
    const exchange = this.#exchange;
    const { req, res, head } = exchange;
    // The exchange may have got a response while it waited.
    if (exchange.hasResponse) this.#end();
    if (this.#isOver) return;
    if (exchange.forwardedAtMs === null) {
      exchange.forwardedAtMs = nowMs;
      // Only now: the wait for a connection is not part of the client span. A retry belongs to the same span.
      if (exchange.trace !== undefined) this.#headerLines += traceHeaderLines(exchange.trace);
    }
    exchange.attempts += 1;
    if (head.body !== 'none' && this.#body === undefined) {
      if (head.expectsContinue) res.writeContinue();
      this.#body = new RequestBody(req, head.body, this.#options.clock);
      exchange.requestBody = this.#body;
      this.#upload = new RateWatch(this.#body, this.#options.uploadRate, () => this.#tooSlowUpload());
      this.#upload.start(this.#options.rateWatches, nowMs);
    }
    this.#send(connection);
  }

  /** Ends the call: gives up the wait for a connection, or closes the connection. */
  abandon(): void {
    if (this.#isOver) return;
    const connection = this.#connection;
    this.#end();
    if (connection === undefined) this.#ticket?.withdraw();
    else connection.destroy();
  }

  /** To be called when the deadline has passed. A body that is still arriving postpones it. */
  checkDeadline(): void {
    this.#queue = undefined;
    const sinceMs = Math.max(this.#exchange.startedAtMs, this.#body?.lastChunkAtMs ?? 0);
    const nowMs = this.#options.clock.monotonicMs();
    if (sinceMs + this.#options.timeoutMs > nowMs) {
      this.#setDeadline(sinceMs, nowMs);
      return;
    }
    this.#exchange.reject(gatewayTimeout());
    this.abandon();
  }

  /** To be called when the response has been arriving for `LONG_MS`. From here on it ends when its key may no longer be used. */
  becomeLong(): void {
    const exchange = this.#exchange;
    this.#queue = undefined;
    if (exchange.entry === undefined) return;
    this.#long = new LongResponse(exchange, exchange.entry, this.#options.trustedProxies);
    this.#options.keyUses.add(this.#long);
  }

  onInterim(head: ResponseHead): void {
    const { res, req } = this.#exchange;
    if (head.status !== 103 || req.httpVersionMinor !== 1 || res.headersSent || !takesMore(res)) return;
    // Node has `writeInformation` since 24.19 and 26.2. Older versions can't write the headers as they came; early hints may be dropped.
    if ('writeInformation' in res) res.writeInformation(head.status, interimHeaders(head));
  }

  onHead(head: ResponseHead): void {
    const exchange = this.#exchange;
    this.#leaveQueue();
    if (exchange.reserved !== undefined) exchange.reportedCost = reportedCostOf(head);
    this.#response = new ResponseStream(this.#exchange, this, {
      status: head.status,
      reason: head.reason,
      headers: responseHeaders(head, this.#exchange),
      length: head.length,
    });
  }

  onBody(chunk: Buffer, buffer: ReadBuffer | undefined): void {
    this.#response?.push(chunk, buffer);
  }

  onTrailer(line: string): void {
    const exchange = this.#exchange;
    if (exchange.reserved !== undefined) exchange.reportedCost ??= reportedCostInTrailer(line);
  }

  onReadEnd(): void {
    const response = this.#response;
    if (response === undefined) return;
    response.flush();
    if (this.#isOver || this.#queue !== undefined || this.#long !== undefined) return;
    const nowMs = this.#options.clock.monotonicMs();
    this.#wait(this.#options.arriving, nowMs + LONG_MS, nowMs);
  }

  onComplete(): void {
    this.#end();
    this.#response?.end(this.#options.responses);
  }

  onSwitched(head: ResponseHead, socket: Socket): void {
    this.#end();
    const exchange = this.#exchange;
    if (exchange.reserved !== undefined) exchange.reportedCost = reportedCostOf(head);
    this.#switched?.(socket, head);
  }

  onError(error: unknown): void {
    const exchange = this.#exchange;
    if (this.#mayRetry(error)) {
      this.#isRetry = true;
      this.#connection = undefined;
      this.#ticket?.retry();
      return;
    }
    const response = this.#response;
    this.#end();
    if (exchange.isClosed) return;
    const failure = backendFailure(error);
    if (response !== undefined && exchange.hasResponse) {
      exchange.error = failure;
      response.cut();
      return;
    }
    // Of a response that is malformed in the read that brought its head, the client has got nothing.
    exchange.bodyBytes = 0;
    exchange.reject(failure);
  }

  /** The client takes no more for now. From here on its rate is watched. */
  pause(): void {
    const response = this.#response;
    this.#connection?.pause();
    if (response === undefined) return;
    this.#download ??= new RateWatch(response, this.#options.downloadRate, () => this.#tooSlowDownload());
    this.#download.start(this.#options.rateWatches, this.#options.clock.monotonicMs());
  }

  resume(): void {
    this.#connection?.resume();
  }

  #send(connection: BackendConnection): void {
    const { req, head, reserved } = this.#exchange;
    const { basePath, host } = this.#options;
    const takesTrailers = reserved !== undefined;
    const method = req.method ?? 'GET';
    const isUpgrade = this.#switched !== undefined;
    this.#connection = connection;
    const target = basePath + head.target;
    const headerLines = this.#headerLines;
    connection.send(
      {
        method,
        head: requestHead({ method, target, host, headerLines, body: head.body, isUpgrade, takesTrailers }),
        body: this.#body,
        isUpgrade,
      },
      this,
    );
  }

  /**
   * Whether the request is sent once more, on another connection. The backend may close an idle connection just when a request is sent on
   * it: that is no failure of the request, and the client gets no error for it if the request can't have had an effect.
   */
  #mayRetry(error: unknown): boolean {
    const connection = this.#connection;
    if (!(error instanceof BackendError) || this.#isOver || this.#isRetry) return false;
    if (connection?.isReused !== true || connection.hasBytes) return false;
    if (this.#body !== undefined || this.#switched !== undefined) return false;
    return RETRIED_METHODS.has(this.#exchange.req.method ?? '');
  }

  #tooSlowUpload(): void {
    const exchange = this.#exchange;
    this.#options.onTooSlow('upload');
    if (exchange.hasResponse) {
      exchange.cutAs('client_gone', 'request_timeout');
      return;
    }
    // The rest of the body would arrive as slowly, so it is not waited for.
    closeAfterResponse(exchange.res);
    exchange.reject(new TollgateError('request_timeout', 'The request body arrives too slowly.'));
  }

  #tooSlowDownload(): void {
    this.#options.onTooSlow('download');
    this.#exchange.cutAs('client_gone', 'request_timeout');
  }

  #setDeadline(sinceMs: number, nowMs: number): void {
    this.#wait(this.#options.deadlines, sinceMs + this.#options.timeoutMs, nowMs);
  }

  #wait(queue: DeadlineQueue<BackendCall>, dueAtMs: number, nowMs: number): void {
    this.#queue = queue;
    this.dueAtMs = dueAtMs;
    queue.add(this, nowMs);
  }

  #leaveQueue(): void {
    this.#queue?.delete(this);
    this.#queue = undefined;
  }

  /** Ends the call: its deadline and its rate watches stop, and it lets go of the connection. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#connection = undefined;
    this.#leaveQueue();
    if (this.#long !== undefined) this.#options.keyUses.delete(this.#long);
    this.#upload?.stop(this.#options.rateWatches);
    this.#download?.stop(this.#options.rateWatches);
    this.#exchange.backend = undefined;
    this.#exchange.backendEndedAtMs = this.#options.clock.monotonicMs();
  }
}

/** Hints have no back-pressure: a client that does not read gets no more of them. */
function takesMore({ socket }: ServerResponse): boolean {
  return socket !== null && !socket.writableNeedDrain;
}
