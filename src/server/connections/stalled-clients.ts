import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TollgateError } from '../../errors.ts';
import { cutConnection } from '../../http/connections/cut-connection.ts';
import { ownerOf, responseDue } from '../../http/node-internals.ts';
import { rejectServed } from '../reject-served.ts';
import type { ClientConnections } from './client-connections.ts';
import { IdleTimeouts } from './idle-timeouts.ts';

/** How long a connection may be idle. Milliseconds. */
export interface IdleLimits {
  /** While a request or a response is on its way. */
  readonly activeMs: number;
  /** Between requests. */
  readonly unusedMs: number;
}

/** Ends connections that are idle for too long. */
export class StalledClients {
  /** The timeout that sockets begin with. Milliseconds. */
  readonly firstTimeoutMs: number;
  readonly #limits: IdleLimits;
  readonly #connections: ClientConnections;
  readonly #idle: IdleTimeouts;

  constructor(limits: IdleLimits, connections: ClientConnections) {
    this.firstTimeoutMs = Math.min(limits.activeMs, limits.unusedMs);
    this.#limits = limits;
    this.#connections = connections;
    this.#idle = new IdleTimeouts(this.firstTimeoutMs);
  }

  /** Listener for the server's `timeout`. */
  handle(socket: Socket): void {
    const due = responseDue(socket);
    const isUnused = due === undefined && socket.bytesWritten > 0;
    if (!this.#idle.isIdleFor(socket, isUnused ? this.#limits.unusedMs : this.#limits.activeMs)) return;
    const isBeingServed = !this.#connections.abandoned.has(socket) && !socket.writableEnded;
    // If no response is due, or nothing more is served, the client had time to close the connection: it is cut.
    if (due !== undefined && isBeingServed) endStalled(due, socket);
    else cutConnection(socket);
  }

  /** Ends a connection with a request body that arrives too slowly and that no exchange watches. */
  endUpload(socket: Socket): void {
    const due = responseDue(socket);
    if (due === undefined || due.headersSent || this.#connections.abandoned.has(socket))
      cutConnection(socket);
    else rejectServed(due, bodyTimeout());
  }
}

/**
 * Nothing moved while a response is due. The client is at fault when it does not take what was written, or does not send what it
 * announced. Otherwise the gateway waits for the backend, which has a separate deadline, or for itself.
 */
function endStalled(due: ServerResponse, socket: Socket): void {
  const { req } = due;
  if (socket.writableLength > 0) {
    cutConnection(socket);
  } else if (!req.complete && !req.isPaused()) {
    if (due.headersSent) cutConnection(socket);
    else rejectUpload(due);
  }
}

function rejectUpload(due: ServerResponse): void {
  const owner = ownerOf(due);
  if (owner === undefined) rejectServed(due, bodyTimeout());
  else owner.reject(bodyTimeout());
}

function bodyTimeout(): TollgateError {
  return new TollgateError('request_timeout', 'The request body did not arrive in time.');
}
