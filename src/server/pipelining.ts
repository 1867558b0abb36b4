import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { cutConnection } from '../http/connections/cut-connection.ts';
import type { RawHeadResponse } from '../http/raw-head-response.ts';

type Serve = (req: IncomingMessage, res: RawHeadResponse) => void;

/** A connection with this many pipelined requests waiting is not read. Bytes that were read already are still parsed: a thousand requests and more. */
const MOST_WAITING = 16;
/** Requests that wait on all connections of a port: 2 to 4 kB each. A connection with more than its own share is closed when there are more. */
const MOST_WAITING_OF_ALL = 50_000;
/** A request whose head has more characters counts as several. */
const HEAD_OF_ONE = 2048;

/**
 * Serves the requests of a connection one after the other, in their order: Node hands them out as they arrive, but only safe ones might
 * be served side by side (RFC 9112 section 9.3.2). Each pipelined request waits for a turn of the event loop, so that a connection with
 * thousands of them in its buffer is served no more often than a connection that sends one at a time. `onFlooded` is called for each
 * connection that is closed because too many wait.
 */
export function serveInOrder(serve: Serve, onFlooded: () => void): Serve {
  const waiting = new WaitingRequests(onFlooded);
  const serveNext = (req: IncomingMessage, res: RawHeadResponse): void => {
    // The client may have left while the request waited: its response has closed already, and nothing would end it again.
    if (req.socket.destroyed) return;
    waiting.delete(req);
    if (!res.destroyed) serve(req, res);
  };
  return (req, res) => {
    // Node gives a response its socket once those before it are written.
    if (res.socket !== null) serve(req, res);
    else if (waiting.add(req)) res.once('socket', () => setImmediate(serveNext, req, res));
  };
}

/** Counts the pipelined requests that wait, and keeps them within bounds. */
class WaitingRequests {
  readonly #counts = new WeakMap<Socket, number>();
  readonly #onFlooded: () => void;
  #all = 0;

  constructor(onFlooded: () => void) {
    this.#onFlooded = onFlooded;
  }

  /** False where the connection is closed, or is closed now because too many wait. */
  add(req: IncomingMessage): boolean {
    const { socket } = req;
    // What is left of a chunk is parsed although its connection was closed.
    if (socket.destroyed) return false;
    if (!this.#counts.has(socket)) this.#watch(socket);
    const before = this.#countOf(socket);
    const count = before + weightOf(req);
    if (count > MOST_WAITING && this.#all >= MOST_WAITING_OF_ALL) {
      cutConnection(socket);
      this.#onFlooded();
      return false;
    }
    this.#set(socket, count);
    if (before < MOST_WAITING && count >= MOST_WAITING) process.nextTick(() => this.#pauseFlooded(socket));
    return true;
  }

  delete(req: IncomingMessage): void {
    const { socket } = req;
    const count = this.#countOf(socket) - weightOf(req);
    this.#set(socket, count);
    if (count === 0) socket.resume();
  }

  #watch(socket: Socket): void {
    socket.once('close', () => this.#set(socket, 0));
    // Node resumes the socket at the end of each request that it parses, and when a large response has been written: each time it is paused
    // again before anything is read.
    socket.on('resume', () => this.#pauseFlooded(socket));
  }

  #pauseFlooded(socket: Socket): void {
    if (this.#countOf(socket) >= MOST_WAITING) socket.pause();
  }

  #countOf(socket: Socket): number {
    return this.#counts.get(socket) ?? 0;
  }

  #set(socket: Socket, count: number): void {
    this.#all += count - this.#countOf(socket);
    this.#counts.set(socket, count);
  }
}

/** As how many requests one counts. */
function weightOf({ url = '', rawHeaders }: IncomingMessage): number {
  const characters = rawHeaders.reduce((sum, { length }) => sum + length, url.length);
  return 1 + Math.floor(characters / HEAD_OF_ONE);
}
