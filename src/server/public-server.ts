// The room `server`: the listener of untrusted HTTP, before it is known whose request it is.
// In: sockets of clients, and what Node's parser makes of their bytes.
// Out: requests that may be served, each with its target taken apart, to management or the proxy; errors to all others.

import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  type ServerOptions,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { cutConnection } from '../http/connections/cut-connection.ts';
import { lingerIfUnread } from '../http/connections/lingering-close.ts';
import { DOWNLOAD_RATE, type MinimumRate, UPLOAD_RATE } from '../http/minimum-body-rate.ts';
import { checkNodeInternals, RawHeadResponse, socketsBetweenRequests } from '../http/node-internals.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import { PeriodicTask } from '../platform/periodic-task.ts';
import { systemRandom } from '../platform/random.ts';
import { ClientConnections } from './connections/client-connections.ts';
import { CLIENT_TIMEOUTS, type ClientTimeouts, keptForMs } from './connections/client-timeouts.ts';
import { ConnectionLimit } from './connections/connection-limit.ts';
import { KeptConnections } from './connections/kept-connections.ts';
import { downloadOn, SlowTransfers, uploadOn } from './connections/slow-transfers.ts';
import { StalledClients } from './connections/stalled-clients.ts';
import { closeIdleConnections, drain } from './drain.ts';
import { ListeningSockets } from './listening-sockets.ts';
import { MAX_HEADERS, REQUEST_HEAD_LIMIT_BYTES } from './parsing/head-limits.ts';
import { MalformedInput } from './parsing/malformed-input.ts';
import { isHeadTimeout } from './parsing/parser-errors.ts';
import { serveInOrder, WaitingRequests } from './pipelining.ts';
import { RequestRouter, type Routes } from './request-router.ts';
import { isWebSocketUpgrade, mayLosePipelinedBytes } from './upgrade-requests.ts';

/** What a port serves, and how. */
export interface PublicServerOptions
  extends Pick<Routes, 'proxied' | 'management' | 'selfService' | 'requestIds' | 'formatRejection'> {
  /** Heads up to this size are parsed, if only to be rejected by `formatRejection`. Bytes; the longest valid head by default. */
  readonly parsedHeadBytes?: number;
  readonly timeouts?: ClientTimeouts | undefined;
  /** Minimum rate of bodies that the gateway itself reads: those that are not proxied, and the rest of a body after its response. */
  readonly uploadRate?: MinimumRate;
  /** Minimum rate of the gateway's own responses, and of the rest of a proxied one after the backend has finished. */
  readonly downloadRate?: MinimumRate;
  /** Called for each connection that was below one of these rates. */
  readonly onTooSlow?: (direction: 'upload' | 'download') => void;
  /** Limit of open connections: those beyond it are closed at once. */
  readonly connectionLimit?: ConnectionLimit | undefined;
  /** Measures idle times for `connectionLimit`; the system's clock by default. */
  readonly clock?: Clock;
  /** Other processes listen on the same port: the system spreads the connections over them. */
  readonly sharesPort?: boolean;
  /** Called for each request that is rejected because of its head, before any handler gets it. */
  readonly onRejected?: Routes['onRejected'];
}

/** The port for clients, none of which is trusted. */
export interface PublicServer {
  /** Resolves with the address of the port. Rejects when the port is not available. */
  listen(port: number, host: string): Promise<AddressInfo>;
  /** From now on every response says `Connection: close`; connections and requests are accepted as before. */
  announceClose(): void;
  /**
   * Accepts no more connections. Requests in progress get responses with `Connection: close`; all connections left after `drainMs` are
   * cut, upgraded ones included. An idle connection is closed at once, or after a second if it has had no request yet: its first one may
   * be under way. Resolves when no connection is left and every response has closed.
   */
  close(drainMs: number): Promise<void>;
}

/** The server of a port that untrusted clients reach. Every rejection is JSON, also where Node's own would be plain. */
export function createPublicServer(options: PublicServerOptions): PublicServer {
  const { timeouts = CLIENT_TIMEOUTS, sharesPort = false, clock = systemClock } = options;
  const { connectionLimit = new ConnectionLimit(Number.POSITIVE_INFINITY) } = options;
  const handlers = eventHandlers(options, timeouts, connectionLimit);
  const { connections, stalled, waiting } = handlers;
  const noticeLeft = () => {
    connections.closeReset();
    return waiting.readOn();
  };
  const probing = new PeriodicTask(noticeLeft, { random: systemRandom, pauseMs: timeouts.probeMs });
  const server = createHttpServer(handlers, options);
  const kept = new KeptConnections({
    keptForMs: keptForMs(timeouts),
    betweenRequests: () => socketsBetweenRequests(server),
  });
  const watches = [...watchTransfers(options, connections.open, stalled), kept];
  const listening = new ListeningSockets(server);
  connections.watch(server, connectionLimit, clock);

  return {
    listen: async (port, host) => {
      await checkNodeInternals();
      const address = await listening.listen({ port, host, sharesPort });
      for (const watch of watches) watch.start();
      probing.start();
      return address;
    },
    announceClose: () => {
      connections.isClosing = true;
    },
    close: async (drainMs) => {
      connections.isClosing = true;
      await drain(server, listening, {
        drainMs,
        connections: connections.open,
        onDrainOver: () => options.proxied?.endDrain(),
      });
      for (const watch of watches) watch.stop();
      await probing.stop();
    },
  };
}

/** The watches of both directions. */
function watchTransfers(
  { uploadRate = UPLOAD_RATE, downloadRate = DOWNLOAD_RATE, onTooSlow = () => {} }: PublicServerOptions,
  connections: Iterable<Socket>,
  stalled: StalledClients,
): readonly SlowTransfers[] {
  const uploads = {
    ...{ rate: uploadRate, connections, transferOn: uploadOn },
    onTooSlow: (socket: Socket) => {
      onTooSlow('upload');
      stalled.endUpload(socket);
    },
  };
  const downloads = {
    ...{ rate: downloadRate, connections, transferOn: downloadOn },
    onTooSlow: (socket: Socket) => {
      onTooSlow('download');
      cutConnection(socket);
    },
  };
  return [new SlowTransfers(uploads), new SlowTransfers(downloads)];
}

/** What handles the events of a port's server. */
interface EventHandlers {
  readonly timeouts: ClientTimeouts;
  readonly connections: ClientConnections;
  readonly router: RequestRouter;
  readonly malformed: MalformedInput;
  readonly stalled: StalledClients;
  readonly waiting: WaitingRequests;
}

function eventHandlers(
  options: PublicServerOptions,
  timeouts: ClientTimeouts,
  connectionLimit: ConnectionLimit,
): EventHandlers {
  const { onRejected = () => {} } = options;
  const connections = new ClientConnections();
  const router = new RequestRouter(
    { ...options, onRejected, keepAliveMs: timeouts.keepAliveMs },
    connections,
  );
  const malformed = new MalformedInput(connections, (socket, error) => router.reject(socket, error));
  const stalled = new StalledClients(
    { activeMs: timeouts.idleMs, unusedMs: keptForMs(timeouts) },
    connections,
  );
  const waiting = new WaitingRequests(() => {
    connectionLimit.flooded += 1;
  }, timeouts.headMs);
  return { timeouts, connections, router, malformed, stalled, waiting };
}

function createHttpServer(handlers: EventHandlers, options: PublicServerOptions): Server {
  const { timeouts, connections, router, malformed, stalled, waiting } = handlers;
  const serve = serveInOrder((req, res) => router.serve(req, res), waiting);
  const server = createServer(serverOptions(options, timeouts, connections), serve);
  server.closeIdleConnections = closeIdleConnections;
  server.timeout = stalled.firstTimeoutMs;
  // Node silently drops headers beyond this count, and parseRequest rejects a request that reaches it.
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.on('checkContinue', serve);
  server.on('checkExpectation', serve);
  server.on('upgrade', (req, socket: Socket, firstBytes) => {
    waiting.noteHead(socket);
    router.upgrade(req, socket, firstBytes);
  });
  server.on('connect', (req, socket: Socket) => {
    waiting.noteHead(socket);
    router.connect(req, socket);
  });
  server.on('timeout', (socket) => stalled.handle(socket));
  server.on('clientError', (error: Error, socket: Socket) => {
    // A response could be taken for that to a request which is just being sent.
    if (isHeadTimeout(error) && socket.bytesRead === 0) {
      socket.destroy();
      return;
    }
    const handle = () => malformed.handle(error, socket);
    if (!isHeadTimeout(error) || !waiting.extendHead(socket, handle)) handle();
  });
  return server;
}

function serverOptions(
  { proxied, parsedHeadBytes = REQUEST_HEAD_LIMIT_BYTES }: PublicServerOptions,
  timeouts: ClientTimeouts,
  connections: ClientConnections,
): ServerOptions<typeof IncomingMessage, typeof RawHeadResponse> {
  const mayUpgrade = proxied === undefined || proxied.upgrade !== undefined;
  return {
    ServerResponse: responseClass(connections),
    maxHeaderSize: parsedHeadBytes,
    requireHostHeader: false, // parseRequest checks it, with a JSON response
    headersTimeout: timeouts.headMs,
    requestTimeout: 0, // an upload may take as long as it makes progress
    keepAliveTimeout: 0, // StalledClients has the idle timeouts
    connectionsCheckingInterval: Math.min(1000, timeouts.headMs),
    shouldUpgradeCallback: (req) => {
      const isUpgrade = mayUpgrade && isWebSocketUpgrade(req);
      if (!isUpgrade && mayLosePipelinedBytes(req)) connections.last.add(req);
      return isUpgrade;
    },
    optimizeEmptyRequests: true,
    noDelay: true,
  };
}

type HeadFields = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * Responses that say `Connection: close` once the port is closing, also to requests that came before. After the last one of a connection,
 * what is still to come of its request is read.
 */
function responseClass(connections: ClientConnections): typeof RawHeadResponse {
  return class extends RawHeadResponse {
    override writeHead(status: number, reason?: string | HeadFields, fields?: HeadFields): this {
      if (connections.isClosing) this.shouldKeepAlive = false;
      if (!this.shouldKeepAlive && this.socket !== null) lingerIfUnread(this.socket, this.req);
      return typeof reason === 'string'
        ? super.writeHead(status, reason, fields)
        : super.writeHead(status, reason ?? fields);
    }
  };
}
