import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { cutConnection } from '../http/connections/cut-connection.ts';
import { responseDue, socketsBetweenRequests } from '../http/node-internals.ts';
import type { ListeningSockets } from './listening-sockets.ts';

/** How often connections that have become idle are looked for. Milliseconds. */
const IDLE_LOOK_MS = 50;
/** How long a connection may take to send its first byte once the server closes. Milliseconds. */
const FIRST_BYTE_MS = 1000;

/**
 * How often connections on which everything is sent are looked for; the second look closes them. Their clients still send, as after a
 * rejected upload, and have 1 to 2 s to read the response: without a key they must not hold up a stop. Milliseconds.
 */
const SENT_LOOK_MS = 1000;

/** How a port is closed. */
export interface DrainOptions {
  readonly drainMs: number;
  readonly connections: ReadonlySet<Socket>;
  /** Called when the drain time is over, before connections are cut. */
  readonly onDrainOver: () => void;
}

/**
 * Stops accepting connections, lets requests in progress end, and cuts what is left after the drain time. Resolves when no connection is
 * left and every response has closed.
 */
export function drain(
  server: Server,
  listening: ListeningSockets,
  { drainMs, connections: sockets, onDrainOver }: DrainOptions,
): Promise<void> {
  return new Promise((resolve) => {
    // A response whose head was sent before the close announced keep-alive: its connection would stay open until that timeout.
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOK_MS);
    let sent: readonly Socket[] = [];
    const lingering = setInterval(() => {
      for (const socket of sent) socket.destroy();
      sent = [...sockets].filter(({ writableFinished }) => writableFinished);
    }, SENT_LOOK_MS);
    // Node counts a connection that never sent a request as busy.
    const unused = setTimeout(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    }, FIRST_BYTE_MS);
    const deadline = setTimeout(() => {
      onDrainOver();
      for (const socket of sockets) cutConnection(socket);
    }, drainMs);
    void listening.close().then(() => {
      for (const timer of [idle, lingering, unused, deadline]) clearTimeout(timer);
      // The server reports the last connection as closed before the sockets emit `close`, and their listeners still have work to do.
      const closed = [...sockets].map(
        (socket) => new Promise<void>((done) => socket.once('close', () => done())),
      );
      void Promise.all(closed).then(() => setImmediate(resolve));
    });
  });
}

/** Replaces the server's method, which `close` calls as well: Node's own also cuts responses that have ended but are not fully sent. */
export function closeIdleConnections(this: Server): void {
  for (const socket of socketsBetweenRequests(this)) {
    if (responseDue(socket) === undefined && socket.writableLength === 0) socket.destroy();
  }
}
