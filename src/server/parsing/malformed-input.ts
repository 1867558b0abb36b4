import type { Socket } from 'node:net';
import type { TollgateError } from '../../errors.ts';
import { cutConnection } from '../../http/connections/cut-connection.ts';
import { closeAfterResponse } from '../../http/connections/unread-body.ts';
import { ownerOf, responseDue } from '../../http/node-internals.ts';
import type { ClientConnections } from '../connections/client-connections.ts';
import { rejectServed } from '../reject-served.ts';
import { parserError } from './parser-errors.ts';

type Reject = (socket: Socket, error: TollgateError) => void;

/** Handles bytes that Node's parser rejects: the error is sent after the responses to earlier requests, and nothing more is served. */
export class MalformedInput {
  readonly #connections: ClientConnections;
  readonly #reject: Reject;

  /** `reject` sends an error on a socket that has no response object. */
  constructor(connections: ClientConnections, reject: Reject) {
    this.#connections = connections;
    this.#reject = reject;
  }

  /** Listener for the server's `clientError`. */
  handle(error: Error, socket: Socket): void {
    // More bytes on such a connection make the parser report the same error again.
    const { abandoned, malformed } = this.#connections;
    if (abandoned.has(socket) || malformed.has(socket)) return;
    malformed.add(socket);
    const fault = parserError(error);
    if (fault === undefined || !socket.writable) socket.destroy();
    else this.#rejectInOrder(socket, fault);
  }

  #rejectInOrder(socket: Socket, error: TollgateError): void {
    if (!socket.writable) return;
    const due = responseDue(socket);
    const owner = due && ownerOf(due);
    if (due?.req.complete) {
      due.once('close', () => this.#rejectInOrder(socket, error));
      return;
    }
    this.#connections.abandoned.add(socket);
    // An error page in the middle of a body would look like a part of it.
    if (due?.headersSent) {
      cutConnection(socket);
    } else if (due !== undefined && owner !== undefined) {
      closeAfterResponse(due);
      owner.reject(error);
    } else if (due !== undefined) {
      rejectServed(due, error);
    } else {
      this.#reject(socket, error);
    }
  }
}
