import type { ReadBuffer } from '../../backend/read-buffers.ts';
import { lingeringClose } from '../../http/connections/lingering-close.ts';
import { closeAfterResponse, hasMuchToSend } from '../../http/connections/unread-body.ts';
import { bytesTaken, type RawHeadResponse } from '../../http/node-internals.ts';
import type { Exchange } from '../exchange.ts';
import type { ResponseHeaders } from '../headers/response-headers.ts';
import type { Transfer } from './rate-watch.ts';

/** A complete response of which nothing has been written. */
interface CompleteResponse {
  /** Writes all of it. */
  writeWhole(): void;
}

/** Most responses that are written together, so that the first of them does not wait for long. */
const MOST = 16;

/**
 * Writes the responses that become complete in one turn of the event loop together, at the end of that turn. Waking a reader costs the
 * kernel more than the rest of the write, and each response that is written alone finds its reader asleep again.
 */
export class ResponseBatcher {
  #complete: CompleteResponse[] = [];
  readonly #writeAll = (): void => this.#write();

  /** Writes the response at the end of this turn. */
  add(response: CompleteResponse): void {
    this.#complete.push(response);
    if (this.#complete.length === 1) setImmediate(this.#writeAll);
    else if (this.#complete.length === MOST) this.#write();
  }

  #write(): void {
    const complete = this.#complete;
    this.#complete = [];
    for (const response of complete) response.writeWhole();
  }
}

/** Head of a backend's response, as the client gets it. */
export interface ClientResponse {
  readonly status: number;
  readonly reason: string;
  /** With those that the gateway adds. */
  readonly headers: ResponseHeaders;
  /** Length of the body that the backend announced, in bytes; undefined when it did not. */
  readonly length: number | undefined;
}

/** Where the response comes from. */
interface Source {
  pause(): void;
  resume(): void;
}

/** Up to this size, head and body fit into the 16 KiB that Node writes of a string without allocating. */
const SMALL_BYTES = 8 * 1024;
/** From this size on a chunk is written from its read buffer. A smaller one is copied: it would keep a large buffer from reuse. */
const LARGE_BYTES = 32 * 1024;
const PLAIN_REASON = /^[\t\x20-\x7e]*$/;

/**
 * Streams a backend's response to the client, with backpressure. Head and body are one write when they arrive together; otherwise the head
 * is sent at once, so that the first event of a stream is not delayed. A response that arrives in one read is written at the end of the
 * turn.
 */
export class ResponseStream implements Transfer {
  readonly #exchange: Exchange;
  readonly #source: Source;
  readonly #head: ClientResponse;
  #isHeadWritten = false;
  /** The first chunk of the body, held until the whole read that brought it was passed on. */
  #held: Buffer | undefined;
  /** The buffer that `#held` is a part of. */
  #heldBuffer: ReadBuffer | undefined;
  #resume: (() => void) | undefined;
  /** `#resume` waits for the client to take more. Chunks that arrived in the same read are still written. */
  #isHeldBack = false;
  #isEnded = false;

  constructor(exchange: Exchange, source: Source, head: ClientResponse) {
    this.#exchange = exchange;
    this.#source = source;
    this.#head = head;
  }

  /** Bytes of the connection that the client has taken; bytes in the system's buffers count as taken. */
  get bytes(): number {
    return bytesTaken(this.#exchange.req.socket);
  }

  /** Infinite while the client takes everything that the backend sends. */
  get excusedUntilMs(): number {
    return this.#isHeldBack ? 0 : Number.POSITIVE_INFINITY;
  }

  /** Takes the next chunk of the body, a part of `buffer` unless that is undefined. Pauses the backend when the client is slower. */
  push(chunk: Buffer, buffer: ReadBuffer | undefined): void {
    this.#exchange.bodyBytes += chunk.length;
    if (!this.#isHeadWritten && this.#held === undefined) {
      this.#held = chunk;
      this.#heldBuffer = buffer;
      return;
    }
    this.flush();
    this.#write(chunk, buffer);
  }

  /** To be called at the end of a read: writes the head and the held chunk, unless they are written already. */
  flush(): void {
    if (this.#isHeadWritten || this.#isLost()) return;
    this.#writeHead();
    const held = this.#held;
    const buffer = this.#heldBuffer;
    this.#held = undefined;
    this.#heldBuffer = undefined;
    if (held === undefined) this.#exchange.res.flushHeaders();
    else this.#write(held, buffer);
  }

  /** The response is complete. If nothing of it has been written, `batcher` calls `writeWhole`. */
  end(batcher: ResponseBatcher): void {
    this.#isEnded = true;
    if (this.#isHeadWritten) {
      this.#finish();
      return;
    }
    // The connection may read again before the response is written.
    this.#heldBuffer?.retain();
    batcher.add(this);
  }

  /** Writes a complete response. Never throws. */
  writeWhole(): void {
    const buffer = this.#heldBuffer;
    try {
      this.#finish();
    } catch (error) {
      this.#exchange.fail(error);
    } finally {
      buffer?.release();
    }
  }

  #finish(): void {
    const { req, res } = this.#exchange;
    if (this.#isLost()) return;
    if (hasMuchToSend(req)) {
      // The backend responded without the rest of the request's body, so the gateway discards the rest.
      if (this.#isHeadWritten) res.once('finish', () => lingeringClose(req.socket));
      else closeAfterResponse(res);
    }
    if (!this.#isHeadWritten) this.#writeHead();
    const held = this.#held;
    const buffer = this.#heldBuffer;
    this.#held = undefined;
    this.#heldBuffer = undefined;
    if (held === undefined) res.end();
    else if (buffer !== undefined && res.endBehindHead(buffer.bytes, held)) keepUntilWritten(res, buffer);
    // As a string it goes out with the head in one plain write, which costs less than a vectored one.
    else if (held.length <= SMALL_BYTES) res.end(held.toString('latin1'), 'latin1');
    else {
      const { bytes, onWritten } = lasting(held, buffer);
      res.end(bytes, onWritten);
    }
  }

  /**
   * The response will never be complete: cuts the connection, because an orderly end could be taken for the end of the body. If the body
   * ends with the connection (HTTP/1.0 without a length), only a reset shows that it is not complete.
   */
  cut(): void {
    const { req, res } = this.#exchange;
    if (res.destroyed) return;
    this.#exchange.isCut = true;
    this.#exchange.outcome = 'truncated';
    this.#isHeadWritten = true;
    if (req.httpVersionMinor === 0 && this.#head.length === undefined) req.socket.resetAndDestroy();
    else req.socket.destroy();
  }

  /** The client has gone, or other code has written its response. */
  #isLost(): boolean {
    const { isClosed, res } = this.#exchange;
    return isClosed || res.writableEnded || (res.headersSent && !this.#isHeadWritten);
  }

  #writeHead(): void {
    const { status, reason, headers } = this.#head;
    this.#isHeadWritten = true;
    const plainReason = PLAIN_REASON.test(reason) ? reason : undefined;
    const { res } = this.#exchange;
    // Node does not find a `Date` in the lines, and would add another.
    if (headers.hasDate) res.sendDate = false;
    res.writeLines(status, plainReason, headers.lines, headers.decisive);
  }

  #write(chunk: Buffer, buffer: ReadBuffer | undefined): void {
    if (this.#isLost() || this.#takes(chunk, buffer) || this.#isHeldBack) return;
    this.#isHeldBack = true;
    this.#source.pause();
    this.#resume ??= () => {
      this.#isHeldBack = false;
      // Once the response is complete, its connection may serve another request.
      if (!this.#isEnded) this.#source.resume();
    };
    this.#exchange.res.once('drain', this.#resume);
  }

  /** Writes a chunk. Returns whether the client takes more. */
  #takes(chunk: Buffer, buffer: ReadBuffer | undefined): boolean {
    const { res } = this.#exchange;
    if (chunk.length <= SMALL_BYTES) return res.write(chunk.toString('latin1'), 'latin1');
    const { bytes, onWritten } = lasting(chunk, buffer);
    return res.write(bytes, onWritten);
  }
}

/**
 * Retains the buffer from which `res` has just written, unless the system has taken all of it already. After a failed write the buffer is
 * never reused. Each client that reads too slowly holds one buffer at most, as it does with large chunks.
 */
function keepUntilWritten(res: RawHeadResponse, buffer: ReadBuffer): void {
  if (res.writableLength === 0) return;
  buffer.retain();
  res.once('finish', () => buffer.release());
}

/** Bytes that stay as they are until they are written; the write has to call `onWritten`. */
interface LastingBytes {
  readonly bytes: Buffer;
  readonly onWritten: ((error?: Error | null) => void) | undefined;
}

function lasting(chunk: Buffer, buffer: ReadBuffer | undefined): LastingBytes {
  if (buffer === undefined) return { bytes: chunk, onWritten: undefined };
  if (chunk.length < LARGE_BYTES) return { bytes: Buffer.from(chunk), onWritten: undefined };
  buffer.retain();
  return { bytes: chunk, onWritten: buffer.release };
}
