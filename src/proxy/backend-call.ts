import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../platform/clock.ts';
import { AnswerStream } from './answer-stream.ts';
import type { BackendConnection } from './backend-connection.ts';
import { backendFault, gatewayTimeout, overloaded } from './backend-errors.ts';
import type { BackendConnections, BackendJob } from './backend-pool.ts';
import type { Abandonable, Exchange } from './exchange.ts';
import { RequestBody } from './request-body.ts';
import { interimFields, isFramingKnown, responseFields } from './response-fields.ts';

/** What a call needs besides its exchange. */
export interface BackendCallOptions {
  readonly connections: BackendConnections;
  /** What each path begins with: the path of the backend's URL, without a slash at its end. */
  readonly basePath: string;
  /** For the answer's head, counted from the request's start, or from the last byte of its body where that is later. Milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Takes over a connection that the backend has switched to another protocol. `fields` are those of its 101. */
export type Switched = (backend: Duplex, fields: readonly Buffer[]) => void;

/** Methods without an effect: only such a request may be sent a second time (RFC 9110 section 9.2.2). */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * One exchange's part with the backend: waits for a connection, sends the request, hands on the answer, and sees to it that neither
 * side outlives the other. undici calls the `on…` methods; the client's side calls `abandon` when it closes.
 */
export class BackendCall implements Dispatcher.DispatchHandler, BackendJob, Abandonable {
  readonly #exchange: Exchange;
  readonly #fields: string[];
  readonly #options: BackendCallOptions;
  readonly #switched: Switched | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #connection: BackendConnection | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #body: RequestBody | null = null;
  #answer: AnswerStream | undefined;
  #isReused = false;
  #isRepeated = false;
  #isOver = false;

  /** With `switched` the request asks for an upgrade to WebSocket. */
  constructor(exchange: Exchange, fields: string[], options: BackendCallOptions, switched?: Switched) {
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
    this.#deadline = setTimeout(checkDeadline, Math.max(0, this.#msLeft()), this);
    if (this.#options.connections.request(this) === 'full') {
      this.#end();
      exchange.refuse(overloaded());
    }
  }

  begin(connection: BackendConnection): void {
    const exchange = this.#exchange;
    const { clock } = this.#options;
    this.#connection = connection;
    exchange.forwardedAtMs = clock.monotonicMs();
    if (exchange.head.hasBody) {
      if (exchange.head.expectsContinue) exchange.res.writeContinue();
      this.#body = new RequestBody(exchange.req, clock);
    }
    this.#dispatch(connection);
  }

  /** The client has closed or was answered without the backend, which need not go on. */
  abandon(): void {
    if (this.#isOver) return;
    const reason = new Error('The client is gone.');
    if (this.#connection === undefined) {
      this.#options.connections.withdraw(this);
      this.#end();
    } else if (this.#controller !== undefined) {
      this.#controller.abort(reason);
    } else {
      // Not sent yet: the connection is still being made, and nothing else can stop that.
      this.#connection.destroy(reason);
    }
  }

  /** Called when the deadline may have passed: a body that is still arriving moves it. */
  checkDeadline(): void {
    const leftMs = this.#msLeft();
    if (leftMs > 0) {
      this.#deadline = setTimeout(checkDeadline, leftMs, this);
      return;
    }
    this.#exchange.refuse(gatewayTimeout());
    this.abandon();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#isReused = this.#connection?.isReused ?? false;
  }

  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    _status: number,
    _parsed: unknown,
    socket: Duplex,
  ): void {
    this.#end();
    if (this.#switched === undefined) socket.destroy();
    else this.#switched(socket, rawFields(controller));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _parsed: unknown,
    reason = '',
  ): void {
    const raw = rawFields(controller);
    if (status < 200) {
      this.#interim(controller, status, raw);
      return;
    }
    if (!isFramingKnown(raw, this.#connection?.httpMinor)) {
      controller.abort(
        new Error('The backend used another protocol, or a transfer coding other than chunked.'),
      );
      return;
    }
    clearTimeout(this.#deadline);
    const answer = responseFields(raw, status, this.#exchange);
    this.#answer = new AnswerStream(this.#exchange, controller, { status, reason, ...answer });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#answer?.push(chunk);
  }

  onResponseEnd(): void {
    // undici takes a reset for the orderly end of a body that ends with the connection.
    if (this.#connection?.isBroken) {
      this.#fail(new Error('The backend reset the connection.'));
      return;
    }
    this.#connection?.served();
    this.#end();
    this.#answer?.end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    if (this.#isOver) return;
    const connection = this.#connection;
    if (connection !== undefined && this.#mayRepeat(connection)) {
      this.#isRepeated = true;
      this.#controller = undefined;
      this.#dispatch(connection);
    } else {
      this.#fail(error);
    }
  }

  #dispatch(connection: BackendConnection): void {
    const { req, head } = this.#exchange;
    connection.dispatch(
      {
        method: req.method ?? 'GET',
        path: this.#options.basePath + head.target,
        headers: this.#fields,
        body: this.#body,
        upgrade: this.#switched === undefined ? null : 'websocket',
        // Whatever the client's connection or the method: the backend's connection is kept.
        reset: false,
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
      this.#controller?.aborted === false &&
      this.#body === null &&
      this.#switched === undefined &&
      REPEATABLE.has(this.#exchange.req.method ?? '')
    );
  }

  #interim(controller: Dispatcher.DispatchController, status: number, raw: readonly Buffer[]): void {
    const { res, req } = this.#exchange;
    if (status === 101) {
      controller.abort(new Error('The backend switched protocols unasked.'));
    } else if (status === 103 && req.httpVersionMinor === 1 && !res.headersSent && takesMore(res)) {
      // Node has it since 24.19 and 26.2; before, nothing can write the fields as they came, and hints may be dropped.
      if ('writeInformation' in res) res.writeInformation(status, interimFields(raw));
    }
  }

  #fail(error: Error): void {
    const exchange = this.#exchange;
    const answer = this.#answer;
    this.#end();
    if (exchange.isClosed) return;
    if (answer === undefined) exchange.refuse(backendFault(error));
    else answer.cut();
  }

  #msLeft(): number {
    const { timeoutMs, clock } = this.#options;
    const since = Math.max(this.#exchange.startedAtMs, this.#body?.lastChunkAtMs ?? 0);
    return Math.ceil(since + timeoutMs - clock.monotonicMs());
  }

  /** Lets go of everything. Nothing that undici reports afterwards counts. */
  #end(): void {
    const connection = this.#connection;
    this.#isOver = true;
    this.#connection = undefined;
    clearTimeout(this.#deadline);
    this.#exchange.backend = undefined;
    this.#exchange.backendEndedAtMs = this.#options.clock.monotonicMs();
    if (connection !== undefined) this.#options.connections.release(connection);
  }
}

/** Hints have no back-pressure: a client that does not read gets no more of them. */
function takesMore({ socket }: ServerResponse): boolean {
  return socket !== null && !socket.writableNeedDrain;
}

/** For the timer: one function for all calls. */
function checkDeadline(call: BackendCall): void {
  call.checkDeadline();
}

/** undici's own type leaves open what it passes: for HTTP/1.1 it is names and values in turn, as received. */
function rawFields({ rawHeaders }: Dispatcher.DispatchController): readonly Buffer[] {
  return Array.isArray(rawHeaders) && areBuffers(rawHeaders) ? rawHeaders : [];
}

function areBuffers(parts: readonly unknown[]): parts is readonly Buffer[] {
  return parts.every(isBuffer);
}

function isBuffer(part: unknown): boolean {
  return Buffer.isBuffer(part);
}
