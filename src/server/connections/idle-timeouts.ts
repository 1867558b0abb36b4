import type { Socket } from 'node:net';

/** What a connection had carried when its timer last fired, and for how long it had been idle by then. */
interface Quiet {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  readonly idleMs: number;
}

/**
 * Idle timeouts of connections that have one timeout between requests and another within them. Node's server would reset the socket's
 * timer twice for each request. Here the timer runs on, and the timeout that applies is looked up only when it fires.
 */
export class IdleTimeouts {
  readonly #shortestMs: number;
  readonly #known = new WeakMap<Socket, Quiet>();

  /** `shortestMs` is the shortest of the timeouts; new sockets start with it. */
  constructor(shortestMs: number) {
    this.#shortestMs = shortestMs;
  }

  /**
   * To be called at each `timeout` of the socket. Returns whether it has been idle for `allowedMs`. If not, the timer is set again, to the
   * rest of that time but at most to the shortest timeout.
   */
  isIdleFor(socket: Socket, allowedMs: number): boolean {
    const { bytesRead, bytesWritten, timeout = 0 } = socket;
    const before = this.#known.get(socket);
    const hasMoved = before?.bytesRead !== bytesRead || before.bytesWritten !== bytesWritten;
    const idleMs = timeout + (hasMoved ? 0 : before.idleMs);
    if (idleMs >= allowedMs) return true;
    this.#known.set(socket, { bytesRead, bytesWritten, idleMs });
    socket.setTimeout(Math.min(this.#shortestMs, allowedMs - idleMs));
    return false;
  }
}
