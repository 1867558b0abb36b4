import type { Socket } from 'node:net';

/** How long a closing connection is still read, so that the client can read our last response first. Milliseconds. */
const LINGER_MS = 2000;

/**
 * Sends what is written and a FIN, and goes on reading (and discarding) what the client sends until it closes too, for two seconds
 * at most. Closing at once while the client still sends makes the kernel respond with a reset, and a reset takes our response, which the
 * client may not have read yet, with it (RFC 9112 section 9.6).
 */
export function lingeringClose(socket: Socket): void {
  if (socket.destroyed) return;
  if (!socket.writableEnded) socket.end();
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

/** Makes Node close this connection in the way above once the response in progress, which must be its last, has been written. */
export function lingerAfterResponse(socket: Socket): void {
  socket.destroySoon = () => lingeringClose(socket);
}
