import type { Socket } from 'node:net';
import { responseDue } from '../node-internals.ts';

/**
 * Ends a client's connection at once, even with a response in progress. If the body of a response to HTTP/1.0 has begun, the end of the
 * connection may mean the end of the body: only a reset tells the client that the body is not complete.
 */
export function cutConnection(socket: Socket): void {
  const due = responseDue(socket);
  // In Node 26 a reset after the end of writing leaks the handle. By then nothing more would be sent anyway.
  if (due?.req.httpVersionMinor === 0 && due.headersSent && !socket.writableEnded) socket.resetAndDestroy();
  else socket.destroy();
}
