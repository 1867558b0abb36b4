import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../platform/clock.ts';
import type { Deadlines, Due } from '../platform/deadlines.ts';
import type { AnswerHead } from './answer-head.ts';
import { AnswerStream } from './answer-stream.ts';
import type { AnswerHandler, BackendConnection } from './backend-connection.ts';
import { backendFault, gatewayTimeout, overloaded } from './backend-errors.ts';
import type { BackendConnections, BackendJob } from './backend-pool.ts';
import type { Abandonable, Exchange } from './exchange.ts';
import { outgoingHead } from './outgoing-head.ts';
import { RequestBody } from './request-body.ts';
import { interimFields, responseFields } from './response-fields.ts';

/** What a call needs besides its exchange. */
export interface BackendCallOptions {
  readonly connections: BackendConnections;
  /** Of the backend's URL: what `Host` says. */
  readonly host: string;
  /** What each path begins with: the path of the backend's URL, without a slash at its end. */
  readonly basePath: string;
  /** For the answer's head, counted from the request's start, or from the last byte of its body where that is later. Milliseconds. */
  readonly timeoutMs: number;
  /** Of all calls. */
  readonly deadlines: Deadlines<BackendCall>;
  readonly clock: Clock;
}

/** Takes over a connection that the backend has switched to another protocol. `head` is its 101. */
export type Switched = (backend: Socket, head: AnswerHead) => void;

/** Methods without an effect: only such a request may be sent a second time (RFC 9110 section 9.2.2). */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * One exchange's part with the backend: waits for a connection, sends the request, hands on the answer, and sees to it that neither
 * side outlives the other. The connection calls the `on…` methods; the client's side calls `abandon` when it closes.
 */
export class BackendCall implements AnswerHandler, BackendJob, Abandonable, Due<BackendCall> {
  dueAtMs = 0;
  before: BackendCall | undefined = undefined;
  after: BackendCall | undefined = undefined;
  readonly #exchange: Exchange;
  readonly #fields: readonly string[];
  readonly #options: BackendCallOptions;
  readonly #switched: Switched | undefined;
  #hasDeadline = false;
  #connection: BackendConnection | undefined;
  #body: RequestBody | undefined;
  #answer: AnswerStream | undefined;
  #isReused = false;
  #isRepeated = false;
  #isOver = false;

  /** With `switched` the request asks for an upgrade to WebSocket. */
  constructor(
    exchange: Exchange,
    fields: readonly string[],
    options: BackendCallOptions,
    switched?: Switched,
  ) {
    this.#exchange = exchange;
    this.#fields = fields;
    this.#options = options;
    this.#switched = switched;
  }

  /** Begins. From here on the exchange is answered, or its connection cut, whatever happens. */
  start(): void {
    const exchange = this.#exchange;
    exchange.backend = this;
    // A body that has to wait for us is not late.
    if (exchange.head.hasBody) exchange.req.pause();
    const nowMs = this.#options.clock.monotonicMs();
    this.#setDeadline(exchange.startedAtMs, nowMs);
    if (this.#options.connections.request(this, nowMs) === 'full') {
      this.#end();
      exchange.refuse(overloaded());
    }
  }

  begin(connection: BackendConnection, nowMs: number): void {
    const exchange = this.#exchange;
    const { clock } = this.#options;
    exchange.forwardedAtMs = nowMs;
    if (exchange.head.hasBody) {
      if (exchange.head.expectsContinue) exchange.res.writeContinue();
      this.#body = new RequestBody(exchange.req, clock);
    }
    this.#send(connection);
  }

  /** The client has closed or was answered without the backend, which need not go on. */
  abandon(): void {
    if (this.#isOver) return;
    if (this.#connection === undefined) this.#options.connections.withdraw(this);
    else this.#connection.destroy();
    this.#end();
  }

  /** To be called when the deadline has passed: a body that is still arriving moves it. */
  checkDeadline(): void {
    this.#hasDeadline = false;
    const sinceMs = Math.max(this.#exchange.startedAtMs, this.#body?.lastChunkAtMs ?? 0);
    const nowMs = this.#options.clock.monotonicMs();
    if (sinceMs + this.#options.timeoutMs > nowMs) {
      this.#setDeadline(sinceMs, nowMs);
      return;
    }
    this.#exchange.refuse(gatewayTimeout());
    this.abandon();
  }

  onInterim(head: AnswerHead): void {
    const { res, req } = this.#exchange;
    if (head.status !== 103 || req.httpVersionMinor !== 1 || res.headersSent || !takesMore(res)) return;
    // Node has it since 24.19 and 26.2; before, nothing can write the fields as they came, and hints may be dropped.
    if ('writeInformation' in res) res.writeInformation(head.status, interimFields(head));
  }

  onHead(head: AnswerHead): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.#clearDeadline();
    this.#answer = new AnswerStream(this.#exchange, connection, {
      status: head.status,
      reason: head.reason,
      fields: responseFields(head, this.#exchange),
      length: head.length,
    });
  }

  onBody(piece: Buffer): void {
    this.#answer?.push(piece);
  }

  onPause(): void {
    this.#answer?.flush();
  }

  onComplete(): void {
    this.#end();
    this.#answer?.end();
  }

  onSwitched(head: AnswerHead, socket: Socket): void {
    this.#end();
    this.#switched?.(socket, head);
  }

  onFailed(error: Error): void {
    const connection = this.#connection;
    if (connection !== undefined && this.#mayRepeat(connection)) {
      this.#isRepeated = true;
      this.#send(this.#options.connections.renew(connection));
    } else {
      this.#fail(error);
    }
  }

  #send(connection: BackendConnection): void {
    const { req, head } = this.#exchange;
    const method = req.method ?? 'GET';
    const hasLength = req.headers['content-length'] !== undefined;
    this.#connection = connection;
    this.#isReused = connection.isReused;
    const isUpgrade = this.#switched !== undefined;
    connection.send(
      {
        method,
        head: outgoingHead({
          method,
          target: this.#options.basePath + head.target,
          host: this.#options.host,
          fields: this.#fields,
          body: head.hasBody ? (hasLength ? 'length' : 'chunked') : 'none',
          isUpgrade,
        }),
        body: this.#body,
        isUpgrade,
      },
      this,
    );
  }

  /** A connection that closed while it was unused costs nobody an error, if what was sent on it can't have had an effect. */
  #mayRepeat(connection: BackendConnection): boolean {
    return (
      this.#isReused &&
      !this.#isRepeated &&
      !connection.hasBytes &&
      this.#body === undefined &&
      this.#switched === undefined &&
      REPEATABLE.has(this.#exchange.req.method ?? '')
    );
  }

  #fail(error: Error): void {
    const exchange = this.#exchange;
    const answer = this.#answer;
    this.#end();
    if (exchange.isClosed) return;
    if (answer === undefined) exchange.refuse(backendFault(error));
    else answer.cut();
  }

  #setDeadline(sinceMs: number, nowMs: number): void {
    this.#hasDeadline = true;
    this.dueAtMs = sinceMs + this.#options.timeoutMs;
    this.#options.deadlines.add(this, nowMs);
  }

  #clearDeadline(): void {
    if (this.#hasDeadline) this.#options.deadlines.delete(this);
    this.#hasDeadline = false;
  }

  /** Lets go of everything. */
  #end(): void {
    if (this.#isOver) return;
    const connection = this.#connection;
    this.#isOver = true;
    this.#connection = undefined;
    this.#clearDeadline();
    const nowMs = this.#options.clock.monotonicMs();
    this.#exchange.backend = undefined;
    this.#exchange.backendEndedAtMs = nowMs;
    if (connection !== undefined) this.#options.connections.release(connection, nowMs);
  }
}

/** Hints have no back-pressure: a client that does not read gets no more of them. */
function takesMore({ socket }: ServerResponse): boolean {
  return socket !== null && !socket.writableNeedDrain;
}
