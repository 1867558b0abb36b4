import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../platform/clock.ts';
import type { OutgoingBody } from './backend-connection.ts';

const LAST_CHUNK = '0\r\n\r\n';

/** A client's body on its way to the backend, piece by piece as it comes: the backend's pace is the client's. */
export class RequestBody implements OutgoingBody {
  readonly #req: IncomingMessage;
  readonly #clock: Clock;
  readonly #isChunked: boolean;
  #socket: Socket | undefined = undefined;
  #isSent = false;
  #isGathering = false;
  /** When the client last sent a part of it, by the monotonic clock. Milliseconds. */
  lastChunkAtMs: number;

  constructor(req: IncomingMessage, clock: Clock) {
    this.#req = req;
    this.#clock = clock;
    this.#isChunked = req.headers['content-length'] === undefined;
    this.lastChunkAtMs = clock.monotonicMs();
  }

  get isSent(): boolean {
    return this.#isSent;
  }

  sendTo(socket: Socket, head: string): void {
    this.#socket = socket;
    this.#req.on('data', this.#onData);
    this.#req.on('end', this.#onEnd);
    socket.on('drain', this.#onDrain);
    // What has arrived already comes at the end of the turn, before what is gathered here goes out: so the head goes with it.
    this.#req.resume();
    this.#gather(socket);
    socket.write(head, 'latin1');
  }

  stop(): void {
    this.#letGo();
    // Nobody listens any more: what still comes is thrown away, so that the client gets to read its answer.
    if (!this.#isSent) this.#req.resume();
  }

  readonly #onData = (piece: Buffer): void => {
    const socket = this.#socket;
    if (socket === undefined) return;
    this.lastChunkAtMs = this.#clock.monotonicMs();
    if (!this.#write(socket, piece)) this.#req.pause();
  };

  readonly #onEnd = (): void => {
    // A client that left in mid-body has no end.
    if (!this.#req.complete) return;
    if (this.#isChunked) this.#socket?.write(LAST_CHUNK, 'latin1');
    this.#isSent = true;
    this.#letGo();
  };

  readonly #onDrain = (): void => {
    this.#req.resume();
  };

  /** Answers whether the socket takes more. */
  #write(socket: Socket, piece: Buffer): boolean {
    this.#gather(socket);
    if (!this.#isChunked) return socket.write(piece);
    socket.write(`${piece.length.toString(16)}\r\n`, 'latin1');
    socket.write(piece);
    return socket.write('\r\n', 'latin1');
  }

  /** What is written from here to the end of the turn goes out in one system call. */
  #gather(socket: Socket): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    socket.cork();
    process.nextTick(() => {
      this.#isGathering = false;
      socket.uncork();
    });
  }

  #letGo(): void {
    this.#req.off('data', this.#onData);
    this.#req.off('end', this.#onEnd);
    this.#socket?.off('drain', this.#onDrain);
    this.#socket = undefined;
  }
}
