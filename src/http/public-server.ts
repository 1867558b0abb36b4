import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
} from 'node:http';
import type { AddressInfo, ListenOptions, Socket } from 'node:net';
import { TollgateError } from '../errors.ts';
import { answerError, closeAfterAnswer, refuseConnection, refuseOnSocket } from './answer-error.ts';
import { hasOption } from './connection-options.ts';
import { errorAnswer } from './error-answers.ts';
import { LineResponse } from './line-response.ts';
import { lingerAfterAnswer } from './lingering-close.ts';
import { neverForwarded } from './method-not-allowed.ts';
import { parserFault } from './parser-faults.ts';
import { QuietConnections } from './quiet-connections.ts';
import { HEAD_LIMIT_BYTES, type RequestHead, readRequestHead } from './request-head.ts';
import { isReservedInDisguise } from './request-target.ts';
import { inTurn } from './request-turns.ts';
import { isReserved } from './reserved-paths.ts';
import { isWebSocketUpgrade, mayLoseNext } from './upgrade-offers.ts';

/** What answers the requests that are not for the management interface. Both methods own the answer, and never throw. */
export interface ProxiedTraffic {
  handle(req: IncomingMessage, res: LineResponse, head: RequestHead): void;
  /** A WebSocket upgrade. `firstBytes` is what the client sent behind its head. */
  upgrade(req: IncomingMessage, socket: Socket, firstBytes: Buffer, head: RequestHead): void;
  /** Ends every upgraded connection. */
  closeUpgrades(): void;
}

/** How long the server waits for whom, in milliseconds. */
export interface PublicServerTimeouts {
  /** For a complete head, from the connection's or the request's first byte. */
  readonly headMs: number;
  /** For the next byte of a request's body, and for a client to take the next byte of an answer. */
  readonly idleMs: number;
  /** For the next request on a connection. */
  readonly keepAliveMs: number;
}

export const PUBLIC_TIMEOUTS: PublicServerTimeouts = Object.freeze({
  headMs: 15_000,
  idleMs: 30_000,
  // Longer than the 60 s that load balancers commonly keep their connections, so that they close first.
  keepAliveMs: 65_000,
});

export interface PublicServerOptions {
  /** Undefined: only the management interface answers here, all paths are its own. */
  readonly proxied?: ProxiedTraffic;
  /** An Express app. Undefined: no path is reserved, everything is proxied. */
  readonly management?: (req: IncomingMessage, res: ServerResponse) => void;
  readonly timeouts?: PublicServerTimeouts;
  /** Other processes listen on the same port: the system spreads the connections over them. */
  readonly sharesPort?: boolean;
  /** Told of each request that was refused for its head, before anything else looked at it. */
  readonly onRefused?: (error: TollgateError) => void;
}

/** So much longer is an unused connection kept than clients are told: what they send at the last moment is answered. Milliseconds. */
const KEEP_ALIVE_GRACE_MS = 1000;

/** Where the system can't spread connections over several sockets of one port, Node's cluster module shares a single one. */
const HAS_REUSE_PORT = process.platform === 'linux';

/** A port on which nobody is trusted. */
export interface PublicServer {
  /** Resolves with the address that is listened on. Rejects when the port can't be had. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** From now on every answer says `Connection: close`; connections and requests are taken as before. */
  announceClose(): void;
  /**
   * Accepts no more connections; requests in progress are answered with `Connection: close`, and what is not done after `drainMs` is
   * cut, upgraded connections included. A connection that carries no request is closed at once, or, if it has not had its first one yet, a
   * second later: it may be under way. Resolves when no connection is left and every response has closed.
   */
  close(drainMs: number): Promise<void>;
}

type HeadFields = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * The server of the public port: refuses ambiguous HTTP before anything else, then sends reserved paths to management and all others
 * to the proxy. Every refusal is JSON, also where Node's own would be plain.
 */
export function createPublicServer(options: PublicServerOptions): PublicServer {
  const {
    proxied,
    management,
    timeouts = PUBLIC_TIMEOUTS,
    sharesPort = false,
    onRefused = () => {},
  } = options;
  let closing = false;
  /** Connections on which it is not certain where a next request would begin: nothing more is read from them. */
  const givenUp = new WeakSet<Socket>();
  /** Connections that brought what can't be parsed, so that what came before is all there is. */
  const malformed = new WeakSet<Socket>();
  /** Requests behind which it is not certain where the next one begins. */
  const lastOnes = new WeakSet<IncomingMessage>();
  const serveInTurn = inTurn(serve);
  const unusedMs = timeouts.keepAliveMs + KEEP_ALIVE_GRACE_MS;
  const shortestMs = Math.min(timeouts.idleMs, unusedMs);
  const quiet = new QuietConnections(shortestMs);

  /** Says `Connection: close` once the server is closing, also when that began after the request. */
  class Response extends LineResponse {
    override writeHead(status: number, reason?: string | HeadFields, fields?: HeadFields): this {
      if (closing) this.shouldKeepAlive = false;
      return typeof reason === 'string'
        ? super.writeHead(status, reason, fields)
        : super.writeHead(status, reason ?? fields);
    }
  }

  const server = createServer(
    {
      ServerResponse: Response,
      maxHeaderSize: HEAD_LIMIT_BYTES,
      requireHostHeader: false, // readRequestHead does, with a JSON answer
      headersTimeout: timeouts.headMs,
      requestTimeout: 0, // an upload may take as long as it makes progress
      keepAliveTimeout: 0, // a connection's times are ours to keep
      connectionsCheckingInterval: Math.min(1000, timeouts.headMs),
      shouldUpgradeCallback: (req) => {
        const isUpgrade = isWebSocketUpgrade(req);
        if (!isUpgrade && mayLoseNext(req)) lastOnes.add(req);
        return isUpgrade;
      },
      optimizeEmptyRequests: true,
      noDelay: true,
    },
    serveInTurn,
  );
  server.timeout = shortestMs;
  server.maxHeadersCount = 0; // bounded by bytes; a count would silently drop fields
  server.on('checkContinue', serveInTurn);
  server.on('checkExpectation', serveInTurn);
  server.on('upgrade', upgrade);
  server.on('connect', (_req: IncomingMessage, socket: Socket) => {
    // Node has taken its own listener away: a client that resets the connection would end the process.
    socket.on('error', () => socket.destroy());
    if (answerDue(socket) !== undefined) socket.destroy();
    else refuseSocket(socket, neverForwarded('CONNECT'));
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.once('end', () => {
      // Node sends first what is written already, for which a client that has gone may keep it waiting.
      const due = answerDue(socket);
      if (due?.writableEnded === false && !givenUp.has(socket)) socket.destroy();
    });
  });
  server.on('timeout', (socket: Socket) => {
    const due = answerDue(socket);
    const isUnused = due === undefined && socket.bytesWritten > 0;
    if (!quiet.isQuietFor(socket, isUnused ? unusedMs : timeouts.idleMs)) return;
    // Where nothing is due, or nothing is read any more, a client that does not go has to be sent away.
    if (due instanceof Response && !givenUp.has(socket) && !socket.writableEnded) endStalled(due, socket);
    else socket.destroy();
  });
  server.on('clientError', (error: Error, socket: Socket) => {
    // Whatever still arrives on such a connection makes the parser complain again.
    if (givenUp.has(socket) || malformed.has(socket)) return;
    malformed.add(socket);
    const fault = parserFault(error);
    if (fault === undefined || !socket.writable) socket.destroy();
    else refuseRest(socket, fault);
  });

  /** Refuses what can't be parsed, once the requests before it are answered. */
  function refuseRest(socket: Socket, fault: TollgateError): void {
    if (!socket.writable) return;
    const due = answerDue(socket);
    if (due?.req.complete) {
      due.once('close', () => refuseRest(socket, fault));
      return;
    }
    givenUp.add(socket);
    // An error page in the middle of a body would look like a part of it.
    if (due?.headersSent) {
      socket.destroy();
    } else if (due instanceof LineResponse && due.owner !== undefined) {
      closeAfterAnswer(due);
      due.owner.refuse(fault);
    } else {
      refuseSocket(socket, fault);
    }
  }

  function readHead(req: IncomingMessage): RequestHead | TollgateError {
    const head = readRequestHead(req);
    if (management === undefined || head instanceof TollgateError || !isReservedInDisguise(head.path))
      return head;
    return new TollgateError('not_found', 'There is nothing at this path.');
  }

  function serve(req: IncomingMessage, res: LineResponse): void {
    // What came behind the last request of a connection was never to be answered.
    if (givenUp.has(req.socket) || req.socket.writableEnded) return;
    if (malformed.has(req.socket) && !req.complete) return;
    const head = readHead(req);
    if (head instanceof TollgateError) {
      givenUp.add(req.socket);
      onRefused(head);
      refuseConnection(res, head);
      return;
    }
    decideKeepAlive(req, res);
    if (proxied === undefined || (management !== undefined && isReserved(head.path))) {
      req.url = head.target;
      management?.(req, res);
    } else {
      proxied.handle(req, res, head);
    }
  }

  function decideKeepAlive(req: IncomingMessage, res: LineResponse): void {
    res._keepAliveTimeout = timeouts.keepAliveMs;
    // Said here as well because Express replaces the methods of its responses.
    if (closing) res.shouldKeepAlive = false;
    if (req.httpVersionMinor === 0) decideForOldClient(req, res);
    if (req.headers.upgrade !== undefined && lastOnes.has(req)) {
      res.shouldKeepAlive = false;
      lingerAfterAnswer(req.socket);
    }
  }

  function upgrade(req: IncomingMessage, socket: Socket, firstBytes: Buffer): void {
    socket.on('error', () => socket.destroy());
    // Node has let go of the connection already: the answers before could not be sent in order, nor the rest be read after them.
    if (answerDue(socket) !== undefined) {
      socket.destroy();
      return;
    }
    const head = readHead(req);
    const fault = head instanceof TollgateError ? head : upgradeFault(req);
    if (head instanceof TollgateError || fault !== undefined) {
      refuseSocket(socket, fault);
    } else if (proxied === undefined || (management !== undefined && isReserved(head.path))) {
      refuseSocket(socket, new TollgateError('not_found', 'There is nothing to upgrade at this path.'));
    } else {
      proxied.upgrade(req, socket, firstBytes, head);
    }
  }

  function refuseSocket(socket: Socket, error: TollgateError | undefined): void {
    if (error !== undefined) onRefused(error);
    refuseOnSocket(socket, error);
  }

  return {
    listen: (port, host) => listen(server, { port, host, reusePort: sharesPort && HAS_REUSE_PORT }),
    announceClose() {
      closing = true;
    },
    close(drainMs) {
      closing = true;
      return drain(server, sockets, { drainMs, closeUpgrades: () => proxied?.closeUpgrades() });
    },
  };
}

/** HTTP/1.0: a connection is kept only on demand, and no answer comes in chunks, whatever `TE` says, which Node believes. */
function decideForOldClient({ headers }: IncomingMessage, res: ServerResponse): void {
  const isKept = hasOption(headers.connection, 'keep-alive') && !hasOption(headers.connection, 'close');
  if (!isKept) res.shouldKeepAlive = false;
  res.useChunkedEncodingByDefault = false;
}

function upgradeFault(req: IncomingMessage): TollgateError | undefined {
  if (req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined) {
    return new TollgateError('bad_request', 'An upgrade must not have a body.');
  }
  if (req.method !== 'GET') return new TollgateError('bad_request', 'A WebSocket upgrade must be a GET.');
  return undefined;
}

/**
 * Called when nothing moved on the connection for the idle time while an answer is due. That is the client's fault when it does not
 * take what was written, or does not send what it announced; otherwise the backend is being waited for, which has its own deadline.
 */
function endStalled(due: LineResponse, socket: Socket): void {
  const { req } = due;
  if (socket.writableLength > 0) {
    socket.destroy();
  } else if (!req.complete && !req.isPaused()) {
    const fault = new TollgateError('request_timeout', 'The request body did not arrive in time.');
    if (due.headersSent) socket.destroy();
    else if (due.owner !== undefined) due.owner.refuse(fault);
    else answerError(due, errorAnswer(fault));
  }
}

/** Node keeps the response whose turn it is on the socket. */
function answerDue(socket: Socket): ServerResponse | undefined {
  const due: unknown = Reflect.get(socket, '_httpMessage');
  return due instanceof ServerResponse ? due : undefined;
}

function listen(server: Server, where: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(where, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('The server has no address.'));
      else resolve(address);
    });
  });
}

/** How often connections that have become idle are looked for. Milliseconds. */
const IDLE_LOOK_MS = 50;
/** How long a connection may take to bring its first byte once the server closes. Milliseconds. */
const FIRST_BYTE_MS = 1000;

interface DrainOptions {
  readonly drainMs: number;
  readonly closeUpgrades: () => void;
}

function drain(
  server: Server,
  sockets: ReadonlySet<Socket>,
  { drainMs, closeUpgrades }: DrainOptions,
): Promise<void> {
  return new Promise((resolve) => {
    // An answer whose head was written before the close keeps its connection, which nobody would end for the whole keep-alive time.
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOK_MS);
    // Node takes a connection without a request for a busy one.
    const unused = setTimeout(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    }, FIRST_BYTE_MS);
    const deadline = setTimeout(() => {
      closeUpgrades();
      server.closeAllConnections();
    }, drainMs);
    server.close(() => {
      for (const timer of [idle, unused, deadline]) clearTimeout(timer);
      // A server counts a connection as closed before the connection and its response say so, and whoever waits for that has work left.
      const closed = [...sockets].map(
        (socket) => new Promise<void>((done) => socket.once('close', () => done())),
      );
      void Promise.all(closed).then(() => setImmediate(resolve));
    });
  });
}
