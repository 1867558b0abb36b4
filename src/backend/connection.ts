import type { OnReadOpts, Socket } from 'node:net';
import { BackendError } from './backend-error.ts';
import { type ConnectionEvent, type ConnectionState, nextState, reusableForMs } from './connection-reuse.ts';
import type { BackendConnector, BackendOptions } from './connector.ts';
import type { ReadBuffer } from './read-buffers.ts';
import type { RequestBody } from './request-body.ts';
import type { ResponseHead } from './response-head.ts';
import { ResponseParser, type ResponseParts } from './response-parser.ts';

/** A request ready to be sent. */
export interface OutgoingRequest {
  readonly method: string;
  /** From the request line to the empty line, in latin1. */
  readonly head: string;
  readonly body: RequestBody | undefined;
  /** The response may be a 101. */
  readonly isUpgrade: boolean;
}

/** Gets the response to a request. After `onComplete`, `onSwitched` or `onError` nothing more comes. */
export interface ResponseHandler {
  /** An interim response (1xx, but not 101). */
  onInterim(head: ResponseHead): void;
  onHead(head: ResponseHead): void;
  /**
   * A chunk of a `buffer` is overwritten after the next call of `onReadEnd`, `onComplete` or `onError`, unless the buffer is retained.
   * The handler may overwrite the bytes before the first chunk of a body in its buffer.
   */
  onBody(chunk: Buffer, buffer: ReadBuffer | undefined): void;
  /** A trailer, as a line without its end. */
  onTrailer?(line: string): void;
  /** All bytes of a read were passed on, and the response is not complete. */
  onReadEnd(): void;
  onComplete(): void;
  /** The backend has switched protocols, as the request asked: the handler owns the socket from here on. */
  onSwitched(head: ResponseHead, socket: Socket): void;
  /** The response will never be complete: a `BackendError`, or what a method of this handler threw. */
  onError(error: unknown): void;
}

/**
 * The owner of a connection. Its methods are called before those of the handler and must not throw. `onIdle` may be called after each
 * response; `onClosed` or `onSwitched` is called once.
 */
export interface ConnectionOwner {
  /** The connection may carry another request. */
  onIdle(): void;
  /** The connection carries no further request, and its socket is closed. */
  onClosed(): void;
  /** The connection carries no further request, but its socket stays open. */
  onSwitched(socket: Socket): void;
}

/**
 * One connection to the backend, which carries one request at a time. `connection-reuse.ts` has its states. When a method of the
 * handler throws, the connection is closed and the handler gets the error, so that a bug in a handler fails one request only.
 */
export class BackendConnection implements ResponseParts {
  readonly #options: BackendOptions;
  readonly #connector: BackendConnector;
  readonly #owner: ConnectionOwner;
  readonly #parser = new ResponseParser(this);
  #state: ConnectionState = 'new';
  #socket: Socket | undefined = undefined;
  /** The socket while it is being connected. */
  #connecting: Socket | undefined = undefined;
  /** The buffer that the socket reads into; undefined for a socket that emits `data`. */
  #readBuffer: ReadBuffer | undefined = undefined;
  #request: OutgoingRequest | undefined = undefined;
  #handler: ResponseHandler | undefined = undefined;
  #head: ResponseHead | undefined = undefined;
  #hasBytes = false;
  #served = 0;
  #isPaused = false;
  #maxIdleMs = 0;
  readonly #onData = (chunk: Buffer): void => this.#read(chunk);
  readonly #onEnd = (): void => this.#ended();
  readonly #onSocketError = (error: Error): void => this.#lost(error);
  readonly #onTimeout = (): void => this.#timedOut();
  readonly #onClose = (): void => {
    this.#releaseBuffer();
    this.#lost();
  };

  constructor(options: BackendOptions, connector: BackendConnector, owner: ConnectionOwner) {
    this.#options = options;
    this.#connector = connector;
    this.#owner = owner;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Whether it has delivered a complete response before. */
  get isReused(): boolean {
    return this.#served > 0;
  }

  /** Whether a byte came since the last request was sent. */
  get hasBytes(): boolean {
    return this.#hasBytes;
  }

  /** How long it may stay idle. Milliseconds. */
  get maxIdleMs(): number {
    return this.#maxIdleMs;
  }

  /** Whether a reserved connection may be written to: it is open, and has no bytes that were read but not parsed. */
  get isUsable(): boolean {
    const socket = this.#socket;
    return (
      this.#state === 'reserved' &&
      socket?.readable === true &&
      socket.writable &&
      socket.readableLength === 0 &&
      socket.writableLength === 0
    );
  }

  /** Reserves an idle connection for a request: `send` uses the reservation, `release` cancels it. */
  reserve(): void {
    this.#transition('reserve');
  }

  release(): void {
    this.#transition('release');
  }

  /** Sends a request: the first one of a new connection, or one that it was reserved for. */
  send(request: OutgoingRequest, handler: ResponseHandler): void {
    const socket = this.#socket;
    this.#transition(socket === undefined ? 'connect' : 'send');
    this.#request = request;
    this.#handler = handler;
    this.#head = undefined;
    this.#hasBytes = false;
    this.#parser.expect(request.method);
    if (socket === undefined) this.#open();
    else this.#write(socket, request);
  }

  /** Stops reading: the client takes no more for now. */
  pause(): void {
    this.#isPaused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#socket?.resume();
    // The idle timeout of the backend does not run while its socket is paused.
    if (this.#head !== undefined) this.#socket?.setTimeout(this.#options.bodyIdleMs);
  }

  /** Closes the socket at once, unless it belongs to a tunnel. The handler of a request in progress is not called any more. */
  destroy(): void {
    this.#handler = undefined;
    this.#close();
  }

  /** Part of the parser's contract, like the other methods below. */
  onInterim(head: ResponseHead): void {
    this.#handler?.onInterim(head);
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    if (head.status !== 101) this.#handler?.onHead(head);
    else if (this.#request?.isUpgrade !== true)
      this.#fail(new BackendError('malformed_response', 'The backend switched protocols unasked.'));
  }

  onBody(chunk: Buffer): void {
    this.#handler?.onBody(chunk, this.#readBuffer);
  }

  onTrailer(line: string): void {
    this.#handler?.onTrailer?.(line);
  }

  onEnd(surplus: Buffer): void {
    const handler = this.#handler;
    const request = this.#request;
    const head = this.#head;
    const socket = this.#socket;
    if (handler === undefined || request === undefined || head === undefined || socket === undefined) return;
    this.#handler = undefined;
    if (head.status === 101) {
      this.#switch(handler, head, { socket, surplus });
      return;
    }
    this.#served += 1;
    this.#maxIdleMs = reusableForMs({
      method: request.method,
      hadBody: request.body !== undefined,
      isRequestSent: (request.body?.isSent ?? true) && socket.writableLength === 0,
      head,
      hasSurplus: surplus.length > 0 || socket.readableLength > 0 || socket.readableEnded,
    });
    if (this.#maxIdleMs > 0) this.#keep(socket);
    else this.#close();
    handler.onComplete();
  }

  /** The one place where the state changes. */
  #transition(event: ConnectionEvent): void {
    this.#state = nextState(this.#state, event);
  }

  #open(): void {
    // The socket of an upgrade is handed over to be piped, so it must emit `data`.
    const onread =
      this.#connector.takesReadBuffer && this.#request?.isUpgrade === false
        ? this.#readIntoBuffers()
        : undefined;
    this.#connecting = this.#connector.connect((error, socket) => {
      this.#connecting = undefined;
      if (socket === undefined) {
        this.#fail(error);
        return;
      }
      if (this.#state !== 'connecting' || this.#request === undefined) {
        socket.destroy();
        return;
      }
      this.#transition('opened');
      this.#socket = socket;
      if (onread === undefined) socket.on('data', this.#onData);
      else this.#readAfterFailedWrite(socket);
      socket.on('end', this.#onEnd).on('error', this.#onSocketError);
      socket.on('timeout', this.#onTimeout).on('close', this.#onClose);
      this.#write(socket, this.#request);
    }, onread);
  }

  /**
   * A backend that responds before the end of a body, such as with 413, and closes, makes the next write fail, with which Node would destroy
   * the socket. The response may be there to be read: the socket is destroyed only after one more poll. Not for a socket that emits
   * `data`, which it does no more after an error.
   */
  #readAfterFailedWrite(socket: Socket): void {
    const destroy = socket.destroy.bind(socket);
    socket.destroy = (error?: Error) => {
      const body = this.#request?.body;
      const isOfWrite = error !== undefined && 'syscall' in error && error.syscall === 'write';
      if (!isOfWrite || body === undefined) return destroy(error);
      body.stop();
      setImmediate(() => setImmediate(() => destroy(error)));
      return socket;
    };
  }

  /** Reads into the same buffer each time, or into a new one while other code retains the buffer. */
  #readIntoBuffers(): OnReadOpts {
    const { readBuffers } = this.#connector;
    return {
      // Called to get the buffer of the next read.
      buffer: () => {
        if (this.#readBuffer?.isShared === true) this.#releaseBuffer();
        this.#readBuffer ??= readBuffers.take();
        return this.#readBuffer.target;
      },
      callback: (length) => {
        if (this.#readBuffer !== undefined) this.#read(this.#readBuffer.target.subarray(0, length));
        return true;
      },
    };
  }

  #releaseBuffer(): void {
    this.#readBuffer?.release();
    this.#readBuffer = undefined;
  }

  #write(socket: Socket, { head, body }: OutgoingRequest): void {
    if (body === undefined) socket.write(head, 'latin1');
    else body.sendTo(socket, head);
  }

  #read(chunk: Buffer): void {
    const handler = this.#handler;
    if (handler === undefined) {
      // Bytes without a request: they must not become the response to the next request.
      this.#close();
      return;
    }
    this.#hasBytes = true;
    try {
      const error = this.#parser.push(chunk);
      if (error !== undefined) {
        this.#fail(error);
      } else if (this.#handler === handler && this.#head !== undefined) {
        this.#awaitMore();
        handler.onReadEnd();
      }
    } catch (error) {
      this.#handler = handler;
      this.#fail(error);
    }
  }

  #ended(): void {
    const handler = this.#handler;
    try {
      if (!this.#parser.end()) this.#lost();
    } catch (error) {
      this.#handler = handler;
      this.#fail(error);
    }
  }

  /** Starts the idle timeout of the body. Not a timer per chunk: the socket's own timer restarts with each chunk. */
  #awaitMore(): void {
    const socket = this.#socket;
    const { bodyIdleMs } = this.#options;
    if (socket !== undefined && socket.timeout !== bodyIdleMs) socket.setTimeout(bodyIdleMs);
  }

  #timedOut(): void {
    if (!this.#isPaused)
      this.#fail(new BackendError('body_timeout', 'The backend stopped sending within a body.'));
  }

  #lost(cause?: Error): void {
    this.#fail(cause instanceof BackendError ? cause : this.#connectionLost(cause));
  }

  #connectionLost(cause: Error | undefined): BackendError {
    const isReset = cause !== undefined && 'code' in cause && cause.code === 'ECONNRESET';
    const when =
      this.#head !== undefined
        ? 'in the response body'
        : this.#hasBytes
          ? 'in the response head'
          : 'before the response';
    return new BackendError('connection_lost', `${isReset ? 'reset' : 'closed'} ${when}`, cause);
  }

  #keep(socket: Socket): void {
    this.#request = undefined;
    if (this.#isPaused) this.resume();
    if (socket.timeout !== undefined && socket.timeout > 0) socket.setTimeout(0);
    this.#transition('keep');
    this.#owner.onIdle();
  }

  #fail(error: unknown): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#close();
    try {
      handler?.onError(error);
    } catch (fault) {
      this.#options.onFault?.(fault);
    }
  }

  /** Detaches a socket that no longer carries HTTP. The bytes after the head are put back, to be read first. */
  #switch(
    handler: ResponseHandler,
    head: ResponseHead,
    { socket, surplus }: { readonly socket: Socket; readonly surplus: Buffer },
  ): void {
    this.#transition('switch');
    this.#socket = undefined;
    this.#request = undefined;
    this.#parser.stop();
    socket.pause();
    socket.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onSocketError);
    socket.off('timeout', this.#onTimeout).off('close', this.#onClose);
    socket.setTimeout(0);
    if (surplus.length > 0) socket.unshift(surplus);
    this.#owner.onSwitched(socket);
    try {
      handler.onSwitched(head, socket);
    } catch (error) {
      socket.on('error', () => {}).destroy();
      throw error;
    }
  }

  #close(): void {
    if (this.#state === 'closed' || this.#state === 'switched') return;
    this.#transition('close');
    this.#parser.stop();
    this.#request?.body?.stop();
    this.#request = undefined;
    this.#connecting?.destroy();
    this.#socket?.destroy();
    this.#owner.onClosed();
  }
}
