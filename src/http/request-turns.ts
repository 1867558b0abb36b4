import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { LineResponse } from './line-response.ts';

type Serve = (req: IncomingMessage, res: LineResponse) => void;

/** From so many requests that wait for their turn on, a connection is not read. What was read of it already is still taken apart. */
const MOST_WAITING = 16;

/**
 * Serves the requests of a connection one after the other, in their order: Node hands them out as they arrive, but only safe ones might
 * be served side by side (RFC 9112 section 9.3.2), and one that is never served costs a client that sends thousands less than it does us.
 */
export function inTurn(serve: Serve): Serve {
  const waiting = new WeakMap<Socket, number>();
  const pauseFlooded = (socket: Socket): void => {
    if ((waiting.get(socket) ?? 0) >= MOST_WAITING) socket.pause();
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
    // At the end of each request Node says to read on, so not before it is through with the piece that it has.
    if (count === MOST_WAITING) process.nextTick(pauseFlooded, socket);
    res.once('socket', () => {
      const left = (waiting.get(socket) ?? 1) - 1;
      waiting.set(socket, left);
      if (left === 0) socket.resume();
      serve(req, res);
    });
  };
}
