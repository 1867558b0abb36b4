import type { OnReadOpts } from 'node:net';

/** As much as one system call reads. */
const SIZE_BYTES = 64 * 1024;
/** A chunk that fills less than this of the buffer is copied: else a few bytes might keep the whole buffer in memory. */
const LEAST_KEPT_BYTES = SIZE_BYTES / 2;

/**
 * The buffer that a socket reads into, again and again: without one Node allocates as much for each read. So a chunk holds only until
 * the callback returns, unless it is kept.
 */
export class ReadBuffer {
  /** For the socket. */
  readonly options: OnReadOpts;
  #bytes: Buffer = Buffer.allocUnsafeSlow(SIZE_BYTES);

  constructor(read: (chunk: Buffer) => void) {
    this.options = {
      // The socket takes the buffer of the next read from here.
      buffer: () => this.#bytes,
      callback: (length) => {
        read(this.#bytes.subarray(0, length));
        return true;
      },
    };
  }

  /** The same bytes, in memory that no read writes to. `chunk` is of the read whose callback runs. */
  keep(chunk: Buffer): Buffer {
    if (chunk.length < LEAST_KEPT_BYTES) return Buffer.from(chunk);
    this.#bytes = Buffer.allocUnsafeSlow(SIZE_BYTES);
    return chunk;
  }
}
