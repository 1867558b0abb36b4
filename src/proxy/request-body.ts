import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Clock } from '../platform/clock.ts';

/**
 * A client's body as the backend transport reads it. The transport destroys the stream that it is given when the backend fails, and
 * destroying a request of Node's destroys its socket, and the answer with it: so it gets this one, which only stops reading.
 */
export class RequestBody extends Readable {
  readonly #req: IncomingMessage;
  readonly #onData = (chunk: Buffer): void => {
    this.lastChunkAtMs = this.#clock.monotonicMs();
    if (!this.push(chunk)) this.#req.pause();
  };
  readonly #onEnd = (): void => {
    this.push(null);
  };
  readonly #clock: Clock;
  /** When the client last sent a part of it, by the monotonic clock. Milliseconds. */
  lastChunkAtMs: number;

  constructor(req: IncomingMessage, clock: Clock) {
    super();
    this.#req = req;
    this.#clock = clock;
    this.lastChunkAtMs = clock.monotonicMs();
    req.on('data', this.#onData);
    req.on('end', this.#onEnd);
    if (req.readableEnded) this.push(null);
  }

  override _read(): void {
    this.#req.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#req.off('data', this.#onData);
    this.#req.off('end', this.#onEnd);
    // Nobody listens any more: what still comes is thrown away, so that the client gets to read its answer.
    this.#req.resume();
    done(error);
  }
}
