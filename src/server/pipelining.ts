import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { RawHeadResponse } from '../http/raw-head-response.ts';

type Serve = (req: IncomingMessage, res: RawHeadResponse) => void;

/** A connection with this many pipelined requests waiting is not read. Bytes that were read already are still parsed. */
const MOST_WAITING = 16;

/**
 * Serves the requests of a connection one after the other, in their order: Node hands them out as they arrive, but only safe ones might
 * be served side by side (RFC 9112 section 9.3.2). Each pipelined request waits for a turn of the event loop, so that a connection with
 * thousands of them in its buffer is served no more often than a connection that sends one at a time.
 */
export function serveInOrder(serve: Serve): Serve {
  const waiting = new WeakMap<Socket, number>();
  const flooded = new WeakSet<Socket>();
  const pauseFlooded = (socket: Socket): void => {
    if ((waiting.get(socket) ?? 0) >= MOST_WAITING) socket.pause();
  };
  const serveNext = (req: IncomingMessage, res: RawHeadResponse): void => {
    const { socket } = req;
    const left = (waiting.get(socket) ?? 1) - 1;
    waiting.set(socket, left);
    if (left === 0) socket.resume();
    // The client may have left while the request waited: its response has closed already, and nothing would end it again.
    if (!res.destroyed && !socket.destroyed) serve(req, res);
  };
  return (req, res) => {
    // Node gives a response its socket once those before it are written.
    if (res.socket !== null) {
      serve(req, res);
      return;
    }
    const { socket } = req;
    const count = (waiting.get(socket) ?? 0) + 1;
    waiting.set(socket, count);
    // Node resumes the socket at the end of each request that it parses, and when a large response has been written: each time it is paused
    // again before anything is read.
    if (count === MOST_WAITING) {
      process.nextTick(pauseFlooded, socket);
      if (!flooded.has(socket)) socket.on('resume', () => pauseFlooded(socket));
      flooded.add(socket);
    }
    res.once('socket', () => setImmediate(serveNext, req, res));
  };
}
