import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TollgateError } from '../errors.ts';
import { cutConnection } from '../http/connections/cut-connection.ts';
import { lingerAfterResponse } from '../http/connections/lingering-close.ts';
import { type ErrorResponse, errorResponse } from '../http/errors/error-responses.ts';
import { FORWARDED_METHODS, neverForwarded } from '../http/errors/method-not-allowed.ts';
import { negotiatedError } from '../http/errors/problem-details.ts';
import { rejectAndClose, rejectOnSocket, type SocketResponse } from '../http/errors/send-error.ts';
import { type RawHeadResponse, responseDue } from '../http/node-internals.ts';
import type { ParsedRequest } from '../http/parsed-request.ts';
import type { RequestIds } from '../http/request-id.ts';
import { isAtOrBelowAny, isReserved } from '../paths/path-matcher.ts';
import type { ClientConnections } from './connections/client-connections.ts';
import { hasOption } from './parsing/connection-header.ts';
import { parseRequest } from './parsing/parse-request.ts';
import { isReservedInDisguise, WHOLE_SERVER } from './parsing/request-target.ts';
import { sendServerOptions } from './server-options.ts';
import { upgradeFault } from './upgrade-requests.ts';

/** Handles the requests that are not for the management interface. Owns the response; never throws. */
interface ProxiedTraffic {
  handle(req: IncomingMessage, res: RawHeadResponse, head: ParsedRequest): void;
  /** A WebSocket upgrade. `firstBytes` is what the client sent after its head. Undefined: offers to upgrade are ignored. */
  upgrade?(req: IncomingMessage, socket: Socket, firstBytes: Buffer, head: ParsedRequest): void;
  /** To be called when the drain time is over, before connections are cut: ends upgrades, and what is cut counts as `unavailable`. */
  endDrain(): void;
}

/** Handles requests of consumers about their own keys. Owns the response; never throws. */
interface SelfService {
  /** Its paths: they and all paths below them. */
  readonly paths: readonly string[];
  serve(req: IncomingMessage, res: RawHeadResponse, head: ParsedRequest): void;
}

/** Where the requests of a port go. */
export interface Routes {
  /** Undefined: only the management interface is served, all paths are its own. */
  readonly proxied?: ProxiedTraffic;
  /** An Express app. Undefined: no path is reserved, everything is proxied. */
  readonly management?: (req: IncomingMessage, res: ServerResponse) => void;
  /** Responds to consumers about their own keys, at its paths. Undefined: all paths are like any other. */
  readonly selfService?: SelfService | undefined;
  /** Called for each request that is rejected because of its head, before any handler gets it. */
  readonly onRejected: (error: TollgateError, requestId: string) => void;
  /** Makes the response to such a request; without a parsed head there is no `req`. By default it is that of the proxy. */
  readonly formatRejection?: ((error: TollgateError, req?: IncomingMessage) => ErrorResponse) | undefined;
  /** Ids for the requests that are rejected here; a handler assigns the ids of its requests itself. */
  readonly requestIds: Pick<RequestIds, 'idOf' | 'make'>;
  /** The timeout that `Keep-Alive` announces. Milliseconds. */
  readonly keepAliveMs: number;
}

/** Rejects ambiguous HTTP before anything else, then sends reserved paths to management and all others to the proxy. */
export class RequestRouter {
  readonly #routes: Routes;
  readonly #connections: ClientConnections;
  /** Whether a path is for management or for self-service on this port. */
  readonly #isReserved: (path: string) => boolean;

  constructor(routes: Routes, connections: ClientConnections) {
    this.#routes = routes;
    this.#connections = connections;
    const { management, selfService } = routes;
    this.#isReserved = (path) =>
      (management !== undefined && isReserved(path)) || isAtOrBelowAny(path, selfService?.paths ?? []);
  }

  serve(req: IncomingMessage, res: RawHeadResponse): void {
    if (!this.#connections.mayServe(req)) return;
    const head = this.#parse(req);
    if (head instanceof TollgateError) {
      this.#connections.abandoned.add(req.socket);
      const requestId = this.#routes.requestIds.idOf(req);
      this.#routes.onRejected(head, requestId);
      res.setHeader('X-Request-Id', requestId);
      rejectAndClose(res, this.#meansManagement(req) ? negotiatedError(head, req) : this.#format(head, req));
      return;
    }
    this.#decideKeepAlive(req, res);
    const { proxied, management, selfService } = this.#routes;
    if (head.path === WHOLE_SERVER) {
      res.setHeader('X-Request-Id', this.#routes.requestIds.idOf(req));
      sendServerOptions(res, FORWARDED_METHODS);
    } else if (selfService !== undefined && isAtOrBelowAny(head.path, selfService.paths)) {
      selfService.serve(req, res, head);
    } else if (proxied === undefined || (management !== undefined && isReserved(head.path))) {
      req.url = head.target;
      management?.(req, res);
    } else {
      proxied.handle(req, res, head);
    }
  }

  upgrade(req: IncomingMessage, socket: Socket, firstBytes: Buffer): void {
    if (!this.#mayTake(req, socket)) return;
    const head = this.#parse(req);
    const { proxied } = this.#routes;
    const made = { requestId: this.#routes.requestIds.idOf(req), method: req.method };
    if (head instanceof TollgateError) {
      this.reject(socket, head, made);
      return;
    }
    const fault = upgradeFault(req);
    if (fault !== undefined) {
      this.reject(socket, fault, made);
    } else if (proxied?.upgrade === undefined || this.#isReserved(head.path)) {
      const nothing = new TollgateError('not_found', 'There is nothing to upgrade at this path.');
      this.reject(socket, nothing, made);
    } else {
      proxied.upgrade(req, socket, firstBytes, head);
    }
  }

  connect(req: IncomingMessage, socket: Socket): void {
    if (!this.#mayTake(req, socket)) return;
    this.reject(socket, neverForwarded('CONNECT'), { requestId: this.#routes.requestIds.idOf(req) });
  }

  /** Sends an error where there is no response object, only the socket, and closes the connection. */
  reject(
    socket: Socket,
    error: TollgateError,
    { requestId = this.#routes.requestIds.make(), method }: SocketResponse = {},
  ): void {
    this.#routes.onRejected(error, requestId);
    rejectOnSocket(socket, this.#format(error), { requestId, method });
  }

  /** Whether the socket that Node has detached for a request can take its response. Otherwise it is cut, or closes. */
  #mayTake(req: IncomingMessage, socket: Socket): boolean {
    // Node has removed its `error` listener: without one, a client that resets the connection would end the process.
    socket.on('error', () => socket.destroy());
    // Responses to earlier requests are due, but they could not be sent in order any more.
    if (responseDue(socket) !== undefined) {
      cutConnection(socket);
      return false;
    }
    if (this.#connections.mayServe(req)) return true;
    // Its last response is sent, and it closes. Read on, so that the client can read that response.
    socket.resume();
    return false;
  }

  #format(error: TollgateError, req?: IncomingMessage): ErrorResponse {
    return this.#routes.formatRejection?.(error, req) ?? errorResponse(error);
  }

  /** Whether a request whose head is rejected was for management, going by its target alone. Errors of the proxy have one format only. */
  #meansManagement({ url = '' }: IncomingMessage): boolean {
    const { proxied, management } = this.#routes;
    return management !== undefined && (proxied === undefined || isReserved(url.split('?', 1)[0] ?? ''));
  }

  #parse(req: IncomingMessage): ParsedRequest | TollgateError {
    const head = parseRequest(req);
    if (head instanceof TollgateError || !isReservedInDisguise(head, this.#isReserved)) return head;
    return new TollgateError('not_found', 'There is nothing at this path.');
  }

  #decideKeepAlive(req: IncomingMessage, res: RawHeadResponse): void {
    res.announceKeepAlive(this.#routes.keepAliveMs);
    // Set here as well because Express replaces the methods of its responses.
    if (this.#connections.isClosing) res.shouldKeepAlive = false;
    if (req.httpVersionMinor === 0) decideForOldClient(req, res);
    if (req.headers.upgrade !== undefined && this.#connections.last.has(req)) {
      res.shouldKeepAlive = false;
      lingerAfterResponse(req.socket);
    }
  }
}

/** HTTP/1.0: a connection is kept only on demand, and no response is chunked. Node would chunk it if `TE` asks for that. */
function decideForOldClient({ headers }: IncomingMessage, res: ServerResponse): void {
  const isKept = hasOption(headers.connection, 'keep-alive') && !hasOption(headers.connection, 'close');
  if (!isKept) res.shouldKeepAlive = false;
  res.useChunkedEncodingByDefault = false;
}
