import type { Socket } from 'node:net';

/** What a connection had carried when it was last found quiet, and for how long it had been then. */
interface Quiet {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  readonly quietMs: number;
}

/**
 * Tells for how long connections have been quiet, where more than one time applies to each: Node's server would set the socket's timer
 * anew twice for each request, from the one to the other and back. Here it runs on, and only when it rings is it asked which time applies.
 */
export class QuietConnections {
  readonly #shortestMs: number;
  readonly #known = new WeakMap<Socket, Quiet>();

  /** `shortestMs` is the shortest of the times, with which sockets begin. */
  constructor(shortestMs: number) {
    this.#shortestMs = shortestMs;
  }

  /**
   * To be asked at each `timeout` of the socket: whether it has been quiet for `allowedMs`. If not, it rings again when that time is
   * over, unless something moves meanwhile, and never later than the shortest time after something has.
   */
  isQuietFor(socket: Socket, allowedMs: number): boolean {
    const { bytesRead, bytesWritten, timeout = 0 } = socket;
    const before = this.#known.get(socket);
    const hasMoved = before?.bytesRead !== bytesRead || before.bytesWritten !== bytesWritten;
    const quietMs = timeout + (hasMoved ? 0 : before.quietMs);
    if (quietMs >= allowedMs) return true;
    this.#known.set(socket, { bytesRead, bytesWritten, quietMs });
    socket.setTimeout(Math.min(this.#shortestMs, allowedMs - quietMs));
    return false;
  }
}
