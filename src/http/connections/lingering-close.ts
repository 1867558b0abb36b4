import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** A closing connection is still read until next to nothing came for this long, so that the client can read our last response first. Milliseconds. */
const QUIET_MS = 2000;
/** Fewer bytes in `QUIET_MS` are next to nothing: the rest of a body comes faster, and a few bytes must not hold a connection. */
const LEAST_BYTES = 512;
/** It is read for 15 times `QUIET_MS` at most, 30 s: many clients read no response before they have sent all of their request. */
const MOST_LOOKS = 15;

/**
 * Sends what is written and a FIN, then reads and discards what the client sends until it closes too, as nginx does. Closing
 * at once while the client still sends makes the kernel respond with a reset, which can destroy a response that the client has not read yet
 * (RFC 9112 section 9.6).
 */
export function lingeringClose(socket: Socket): void {
  if (socket.destroyed) return;
  if (!socket.writableEnded) socket.end();
  socket.resume();
  let { bytesRead } = socket;
  let looks = 0;
  const timer = setInterval(() => {
    looks += 1;
    if (looks === MOST_LOOKS || socket.bytesRead - bytesRead < LEAST_BYTES) socket.destroy();
    bytesRead = socket.bytesRead;
  }, QUIET_MS);
  socket.once('close', () => clearInterval(timer));
}

/** The same if the client has not sent its whole request by the end of the response; else Node closes the connection at once. */
export function lingerIfUnread(socket: Socket, req: IncomingMessage): void {
  const { destroySoon } = socket;
  socket.destroySoon = () => (req.complete ? destroySoon.call(socket) : lingeringClose(socket));
}

/** Makes Node close the connection by `lingeringClose` after the response in progress, which must be its last. */
export function lingerAfterResponse(socket: Socket): void {
  socket.destroySoon = () => lingeringClose(socket);
}
