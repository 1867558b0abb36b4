/** Most that one read takes: a head, and as much of a body as comes with it. */
const READ_BYTES = 68 * 1024;
/** In front of what is read: room for the head of the response that is sent on, so that it can be written together with the body. */
const ROOM_BYTES = 2 * 1024;
/** Unused buffers that are kept: what a few responses at once need. */
const MOST_UNUSED = 64;

/**
 * What a connection reads into. It is read into again once what is in it is needed no more: code that keeps a part of it beyond the
 * call in which it gets that must `retain` it, and call `release` once for each time.
 */
export class ReadBuffer {
  readonly bytes: Buffer = Buffer.allocUnsafeSlow(ROOM_BYTES + READ_BYTES);
  /** The part that a connection reads into. What is before it belongs to no read. */
  readonly target: Buffer = this.bytes.subarray(ROOM_BYTES);
  readonly #pool: ReadBuffers;
  #users = 0;
  #isLost = false;

  constructor(pool: ReadBuffers) {
    this.#pool = pool;
  }

  get isShared(): boolean {
    return this.#users > 1;
  }

  retain(): void {
    this.#users += 1;
  }

  /**
   * May be given as the callback of a write. After a write that failed the buffer is left to the garbage collection, because the system
   * may not be done with it.
   */
  readonly release = (error?: Error | null): void => {
    if (error) this.#isLost = true;
    this.#users -= 1;
    if (this.#users === 0 && !this.#isLost) this.#pool.putBack(this);
  };
}

/**
 * The buffers of all connections to a backend. Without them Node makes one of 64 KiB for each read, and collecting those is what large
 * bodies cost most.
 */
export class ReadBuffers {
  readonly #unused: ReadBuffer[] = [];
  /** Buffers made since the start. */
  made = 0;

  /** A buffer with one user, the caller. */
  take(): ReadBuffer {
    let buffer = this.#unused.pop();
    if (buffer === undefined) {
      this.made += 1;
      buffer = new ReadBuffer(this);
    }
    buffer.retain();
    return buffer;
  }

  /** For a buffer without users. */
  putBack(buffer: ReadBuffer): void {
    if (this.#unused.length < MOST_UNUSED) this.#unused.push(buffer);
  }
}
