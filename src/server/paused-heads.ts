import type { Socket } from 'node:net';

interface PausedHead {
  /** Ends its time; undefined while the connection is paused. */
  timer: NodeJS.Timeout | undefined;
  /** Set when Node's timeout for the head is over. */
  onTimeout: (() => void) | undefined;
}

/**
 * Times the heads of connections that were paused. Node's timeout for a head goes on while its rest is not read, and expires only once for
 * each head: so the rest gets the time of a whole head from when the connection is resumed, and no more.
 */
export class PausedHeads {
  readonly #headMs: number;
  /** By connection: its next head may have been read in part. */
  readonly #heads = new Map<Socket, PausedHead>();

  constructor(headMs: number) {
    this.#headMs = headMs;
  }

  /** To be called when a connection is paused. */
  pause(socket: Socket): void {
    if (!this.#heads.has(socket)) this.#heads.set(socket, { timer: undefined, onTimeout: undefined });
  }

  /** To be called when a connection is read on. */
  resume(socket: Socket): void {
    const head = this.#heads.get(socket);
    if (head === undefined || head.timer !== undefined) return;
    head.timer = setTimeout(() => {
      this.#heads.delete(socket);
      head.onTimeout?.();
    }, this.#headMs);
  }

  /** To be called when the next head is complete, and when the connection is closed. */
  delete(socket: Socket): void {
    const head = this.#heads.get(socket);
    if (head === undefined) return;
    clearTimeout(head.timer);
    this.#heads.delete(socket);
  }

  /** To be called when Node's timeout for a head is over. False if this head has no more time; otherwise `onTimeout` is called then. */
  extend(socket: Socket, onTimeout: () => void): boolean {
    const head = this.#heads.get(socket);
    if (head === undefined) return false;
    head.onTimeout = onTimeout;
    return true;
  }
}
