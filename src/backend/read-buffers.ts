/** Most bytes of one read: a head, and the part of a body that arrives with it. */
const READ_BYTES = 68 * 1024;
/** Room in front of the read bytes for the head that is sent to the client, so that head and body are one write. */
const ROOM_BYTES = 2 * 1024;
/** Unused buffers that are kept: what a few responses at once need. */
const MOST_UNUSED = 64;

/**
 * A buffer that a connection reads into, again and again. Code that keeps a part of it beyond the call that passes the part on must
 * `retain` the buffer, and call `release` once for each `retain`.
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
   * May be used as the callback of a write. After a failed write the buffer is left to the garbage collection, because the system may
   * still read it.
   */
  readonly release = (error?: Error | null): void => {
    if (error) this.#isLost = true;
    this.#users -= 1;
    if (this.#users === 0 && !this.#isLost) this.#pool.putBack(this);
  };
}

/**
 * The buffers of all connections to a backend. Without them Node allocates 64 KiB for each read, and collecting that garbage is the
 * largest cost of large bodies.
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
