import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Clock } from '../platform/clock.ts';
import { BackendError } from './backend-error.ts';

/** Where the body of a request comes from. */
export interface BodySource extends Readable {
  /** The whole body has arrived; false after a sender that left before its end. */
  readonly complete: boolean;
}

const LAST_CHUNK = '0\r\n\r\n';

/** Sends a body to the backend chunk by chunk as it arrives, with backpressure: a slow backend slows the client down. */
export class RequestBody {
  readonly #source: BodySource;
  readonly #clock: Clock;
  readonly #framing: 'chunked' | number;
  #socket: Socket | undefined = undefined;
  #isSent = false;
  #isCorked = false;
  #drainedAtMs = 0;
  /** When a part of it last arrived, by the monotonic clock. Milliseconds. */
  lastChunkAtMs: number;
  /** Bytes that have arrived. */
  bytes = 0;

  /** `framing` is the length in bytes that the head announces, or `chunked`. */
  constructor(source: BodySource, framing: 'chunked' | number, clock: Clock) {
    this.#source = source;
    this.#framing = framing;
    this.#clock = clock;
    this.lastChunkAtMs = clock.monotonicMs();
  }

  /** All of it was written. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** When the backend last held it back, by the monotonic clock; infinite while it does, and when nothing is left to send. */
  get excusedUntilMs(): number {
    const isHeldBack = this.#socket === undefined || this.#socket.writableNeedDrain;
    return isHeldBack ? Number.POSITIVE_INFINITY : this.#drainedAtMs;
  }

  /** Writes the head, then the body as it arrives. */
  sendTo(socket: Socket, head: string): void {
    this.#socket = socket;
    this.#source.on('data', this.#onData);
    this.#source.on('end', this.#onEnd);
    socket.on('drain', this.#onDrain);
    // Chunks that have arrived already are emitted in the next tick, before the socket is uncorked: head and chunks are one write.
    this.#source.resume();
    this.#cork(socket);
    socket.write(head, 'latin1');
  }

  /** Stops writing. */
  stop(): void {
    this.#detach();
    // The rest of the body is discarded, so that the client finishes sending and reads the response.
    if (!this.#isSent) this.#source.resume();
  }

  readonly #onData = (chunk: Buffer): void => {
    const socket = this.#socket;
    if (socket === undefined) return;
    this.lastChunkAtMs = this.#clock.monotonicMs();
    this.bytes += chunk.length;
    if (typeof this.#framing === 'number' && this.bytes > this.#framing) this.#mismatch(socket);
    else if (!this.#write(socket, chunk)) this.#source.pause();
  };

  readonly #onEnd = (): void => {
    const socket = this.#socket;
    // The body of a client that left too early is not complete, so it must not be ended.
    if (socket === undefined || !this.#source.complete) return;
    if (typeof this.#framing === 'number' && this.bytes !== this.#framing) {
      this.#mismatch(socket);
      return;
    }
    if (this.#framing === 'chunked') socket.write(LAST_CHUNK, 'latin1');
    this.#isSent = true;
    this.#detach();
  };

  readonly #onDrain = (): void => {
    this.#drainedAtMs = this.#clock.monotonicMs();
    this.#source.resume();
  };

  /** The backend would take what follows for another request, or wait for the rest. */
  #mismatch(socket: Socket): void {
    this.#detach();
    socket.destroy(
      new BackendError('request_body', 'The body of a request has another length than its head said.'),
    );
  }

  /** Returns whether the socket takes more. */
  #write(socket: Socket, chunk: Buffer): boolean {
    this.#cork(socket);
    if (this.#framing !== 'chunked') return socket.write(chunk);
    socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
    socket.write(chunk);
    return socket.write('\r\n', 'latin1');
  }

  /** Collects what is written before the next tick into one system call. */
  #cork(socket: Socket): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      socket.uncork();
    });
  }

  #detach(): void {
    this.#source.off('data', this.#onData);
    this.#source.off('end', this.#onEnd);
    this.#socket?.off('drain', this.#onDrain);
    this.#socket = undefined;
  }
}
