import type { Socket } from 'node:net';
import type { AnswerHead } from './answer-head.ts';
import { AnswerParser, type AnswerParts } from './answer-parser.ts';
import type { BackendConnector, BackendOptions } from './backend-connector.ts';

/** What a connection tells the request that it carries. After `onComplete`, `onSwitched` or `onFailed` nothing more comes. */
export interface AnswerHandler {
  /** An interim answer (1xx, but not 101). */
  onInterim(head: AnswerHead): void;
  onHead(head: AnswerHead): void;
  onBody(piece: Buffer): void;
  /** All that has arrived was handed on, and more will follow. */
  onPause(): void;
  onComplete(): void;
  /** The backend has switched protocols, as it was asked to: the socket is the handler's from here on. */
  onSwitched(head: AnswerHead, socket: Socket): void;
  /** The answer will never be complete. */
  onFailed(error: Error): void;
}

/** A request ready to be sent. */
export interface OutgoingRequest {
  readonly method: string;
  /** From the request line to the empty line, in latin1. */
  readonly head: string;
  readonly body: OutgoingBody | undefined;
  /** The answer may be a 101. */
  readonly isUpgrade: boolean;
}

/** The body of a request, as the connection sends it. */
export interface OutgoingBody {
  /** Writes the head, and itself behind it as it comes. */
  sendTo(socket: Socket, head: string): void;
  /** Stops writing. */
  stop(): void;
  /** All of it was written. */
  readonly isSent: boolean;
}

/** An unused connection is closed after this time unless the backend's `Keep-Alive` says how long it keeps it: Node's servers, for one, keep 5 s. */
const UNUSED_MS = 4000;
/** How much earlier than the backend announces an unused connection is closed. */
const MARGIN_MS = 1000;
const LONGEST_UNUSED_MS = 600_000;

/** One connection to the backend, which carries one request at a time. When its socket closes it is of no more use. */
export class BackendConnection implements AnswerParts {
  /** When it was given back, by the monotonic clock: for whoever keeps it. Milliseconds. */
  unusedSinceMs = 0;
  readonly #connector: BackendConnector;
  readonly #bodyIdleMs: number;
  readonly #onGone: (connection: BackendConnection) => void;
  readonly #parser = new AnswerParser(this);
  #socket: Socket | undefined = undefined;
  /** The socket while it is being connected. */
  #connecting: Socket | undefined = undefined;
  #request: OutgoingRequest | undefined = undefined;
  #handler: AnswerHandler | undefined = undefined;
  #head: AnswerHead | undefined = undefined;
  #hasBytes = false;
  #served = 0;
  #isPaused = false;
  #isClosed = false;
  #unusedMs = UNUSED_MS;
  readonly #onData = (piece: Buffer): void => this.#read(piece);
  readonly #onEnd = (): void => this.#ended();
  readonly #onError = (error: Error): void => this.#fail(error);
  readonly #onTimeout = (): void => this.#silent();
  readonly #onClose = (): void => this.#fail(new Error('The connection to the backend is closed.'));

  /** `onGone` is called once, when it can't be used any more. */
  constructor(
    { bodyIdleMs }: BackendOptions,
    connector: BackendConnector,
    onGone: (connection: BackendConnection) => void,
  ) {
    this.#bodyIdleMs = bodyIdleMs;
    this.#connector = connector;
    this.#onGone = onGone;
  }

  /** Whether it has brought a whole answer before. */
  get isReused(): boolean {
    return this.#served > 0;
  }

  /** Whether a byte came since the last request was sent. */
  get hasBytes(): boolean {
    return this.#hasBytes;
  }

  /** False once its socket is closed or about to be: it takes no more requests. */
  get isUsable(): boolean {
    return !this.#isClosed;
  }

  /** How long it may be kept without a request. Milliseconds. */
  get unusedMs(): number {
    return this.#unusedMs;
  }

  /** Sends a request. The one before it must be over. */
  send(request: OutgoingRequest, handler: AnswerHandler): void {
    this.#request = request;
    this.#handler = handler;
    this.#head = undefined;
    this.#hasBytes = false;
    this.#isPaused = false;
    this.#parser.expect(request.method);
    if (this.#socket === undefined) this.#open();
    else this.#write(this.#socket, request);
  }

  /** Stops reading: the client takes no more for now. */
  pause(): void {
    this.#isPaused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#socket?.resume();
    // The time that a backend may be silent does not run while it is not listened to.
    if (this.#head !== undefined) this.#socket?.setTimeout(this.#bodyIdleMs);
  }

  /** Closes the socket at once. A request in progress is not told. */
  destroy(): void {
    this.#handler = undefined;
    this.#close();
  }

  onInterim(head: AnswerHead): void {
    this.#handler?.onInterim(head);
  }

  onHead(head: AnswerHead): void {
    this.#head = head;
    if (head.status !== 101) this.#handler?.onHead(head);
    else if (this.#request?.isUpgrade !== true)
      this.#fail(new Error('The backend switched protocols unasked.'));
  }

  onBody(piece: Buffer): void {
    this.#handler?.onBody(piece);
  }

  onEnd(rest: Buffer): void {
    const handler = this.#handler;
    const request = this.#request;
    const head = this.#head;
    const socket = this.#socket;
    if (handler === undefined || head === undefined || socket === undefined) return;
    this.#handler = undefined;
    if (head.status === 101) {
      this.#handOver(socket, rest);
      handler.onSwitched(head, socket);
      return;
    }
    this.#served += 1;
    // What nobody asked for, or what nobody waited for the end of, must not meet the next request.
    const isAllRead = rest.length === 0 && socket.readableLength === 0;
    if (isAllRead && !socket.readableEnded && head.keepsAlive && (request?.body?.isSent ?? true))
      this.#keep(head, socket);
    else this.#close();
    handler.onComplete();
  }

  #open(): void {
    this.#connecting = this.#connector.connect((error, socket) => {
      this.#connecting = undefined;
      if (socket === undefined) {
        this.#fail(error ?? new Error('There is no connection to the backend.'));
        return;
      }
      if (this.#isClosed) {
        socket.destroy();
        return;
      }
      this.#socket = socket;
      socket.setNoDelay(true);
      socket.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError);
      socket.on('timeout', this.#onTimeout).on('close', this.#onClose);
      if (this.#request !== undefined) this.#write(socket, this.#request);
    });
  }

  #write(socket: Socket, { head, body }: OutgoingRequest): void {
    if (body === undefined) socket.write(head, 'latin1');
    else body.sendTo(socket, head);
  }

  #read(piece: Buffer): void {
    const handler = this.#handler;
    if (handler === undefined) {
      // Nobody has asked for it: whatever it says must not become the answer to what is asked next.
      this.#close();
      return;
    }
    this.#hasBytes = true;
    const fault = this.#parser.push(piece);
    if (fault !== undefined) {
      this.#fail(fault);
      return;
    }
    if (this.#handler !== handler || this.#head === undefined) return;
    this.#awaitMore();
    handler.onPause();
  }

  #ended(): void {
    if (!this.#parser.end()) this.#fail(new Error('The backend closed the connection.'));
  }

  /** From here on the backend may be silent for so long. Not a moment per piece: the socket itself starts anew with each. */
  #awaitMore(): void {
    const socket = this.#socket;
    if (socket !== undefined && socket.timeout !== this.#bodyIdleMs) socket.setTimeout(this.#bodyIdleMs);
  }

  #silent(): void {
    if (!this.#isPaused) this.#fail(new Error('The backend fell silent within a body.'));
  }

  #keep({ keepAliveMs }: AnswerHead, socket: Socket): void {
    this.#request = undefined;
    if (socket.timeout !== undefined && socket.timeout > 0) socket.setTimeout(0);
    if (this.#isPaused) socket.resume();
    this.#unusedMs =
      keepAliveMs === undefined ? UNUSED_MS : Math.min(keepAliveMs - MARGIN_MS, LONGEST_UNUSED_MS);
    if (this.#unusedMs <= 0) this.#close();
  }

  #fail(error: Error): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#close();
    handler?.onFailed(error);
  }

  /** Lets go of a socket that is no HTTP any more. What came behind the head is read first. */
  #handOver(socket: Socket, rest: Buffer): void {
    this.#socket = undefined;
    socket.pause();
    socket.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError);
    socket.off('timeout', this.#onTimeout).off('close', this.#onClose);
    socket.setTimeout(0);
    if (rest.length > 0) socket.unshift(rest);
    this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#parser.stop();
    this.#request?.body?.stop();
    this.#request = undefined;
    this.#connecting?.destroy();
    this.#socket?.destroy();
    this.#onGone(this);
  }
}
