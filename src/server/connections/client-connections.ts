import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { cutConnection } from '../../http/connections/cut-connection.ts';
import { isDisconnected, responseDue } from '../../http/node-internals.ts';
import type { Clock } from '../../platform/clock.ts';
import type { ConnectionLimit } from './connection-limit.ts';
import { FairEviction } from './fair-eviction.ts';
import { IdleConnections } from './idle-connections.ts';

/** The open connections of a port, and which of their requests may still be served. */
export class ClientConnections {
  readonly open = new Set<Socket>();
  /** The port is closing: every response says `Connection: close`. */
  isClosing = false;
  /** Connections on which nothing more is served, because the start of the next request is uncertain. */
  readonly abandoned = new WeakSet<Socket>();
  /** Connections that brought bytes which can't be parsed: only the requests before them are served. */
  readonly malformed = new WeakSet<Socket>();
  /** Requests after which the start of the next one is uncertain. */
  readonly last = new WeakSet<IncomingMessage>();

  watch(server: Server, limit: ConnectionLimit, clock: Clock): void {
    const idle = new IdleConnections({ server, open: this.open, limit, clock });
    const eviction = new FairEviction(this.open, limit, clock);
    server.on('connection', (socket: Socket) => {
      eviction.add(socket);
      idle.makeRoom();
      if (limit.isFull && eviction.makeRoomFor(socket)) limit.replace();
      else if (!limit.mayOpen()) {
        socket.destroy();
        return;
      }
      this.open.add(socket);
      socket.once('close', () => {
        this.open.delete(socket);
        idle.delete(socket);
        eviction.delete(socket);
        limit.close();
      });
      socket.once('end', () => {
        // Node would first send what is already written, and a client that has left may never take it.
        const due = responseDue(socket);
        if (due?.writableEnded === false && !this.abandoned.has(socket)) cutConnection(socket);
      });
    });
  }

  /** Closes connections that were reset while a response is due, even if nothing is being read from them. */
  closeReset(): void {
    for (const socket of this.open) {
      if (responseDue(socket) !== undefined && isDisconnected(socket)) cutConnection(socket);
    }
  }

  /** Whether a parsed request is to be served: its connection is not abandoned or ending, and its body is not malformed. */
  mayServe({ socket, complete }: IncomingMessage): boolean {
    if (this.abandoned.has(socket) || socket.writableEnded) return false;
    return complete || !this.malformed.has(socket);
  }
}
