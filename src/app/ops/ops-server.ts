import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TollgateError } from '../../errors.ts';
import { errorResponse } from '../../http/errors/error-responses.ts';
import { rejectAndClose, rejectOnSocket } from '../../http/errors/send-error.ts';
import { sharedWhileRunning } from '../../platform/concurrency/shared-while-running.ts';
import { ClientConnections } from '../../server/connections/client-connections.ts';
import { ConnectionLimit } from '../../server/connections/connection-limit.ts';
import { REQUEST_HEAD_LIMIT_BYTES } from '../../server/parsing/head-limits.ts';
import { MalformedInput } from '../../server/parsing/malformed-input.ts';
import { parseRequest } from '../../server/parsing/parse-request.ts';
import { WHOLE_SERVER } from '../../server/parsing/request-target.ts';
import { sendServerOptions } from '../../server/server-options.ts';

/** What the ops port shows. */
export interface OpsSources {
  readonly readiness: () => Promise<{
    readonly ready: boolean;
    readonly components: Readonly<Record<string, string>>;
  }>;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Limits of the ops port's clients. */
export interface OpsLimits {
  /** Timeout for a complete request head. Milliseconds. */
  readonly headMs: number;
  /** Timeout for a complete request, and for an idle connection. Milliseconds. */
  readonly idleMs: number;
  /** Connections open at a time; further ones are closed at once. */
  readonly connections: number;
}

export const OPS_LIMITS: OpsLimits = { headMs: 5000, idleMs: 10_000, connections: 256 };

/**
 * The port for kubelet and Prometheus: `/livez` (the event loop runs), `/readyz` (every component responds; names those that don't)
 * and `/metrics`. It is a separate port because on the public one these paths would hide the backend's. It rejects the same heads as
 * that one. Concurrent requests for `/metrics` share one scrape.
 */
export function createOpsServer(sources: OpsSources, limits: OpsLimits = OPS_LIMITS): Server {
  const metrics = sharedWhileRunning(sources.metrics);
  const routes: Readonly<Record<string, (res: ServerResponse) => Promise<void>>> = {
    '/livez': async (res) => sendJson(res, 200, { status: 'ok' }),
    '/readyz': async (res) => {
      const report = await sources.readiness();
      sendJson(res, report.ready ? 200 : 503, {
        status: report.ready ? 'ready' : 'not ready',
        components: report.components,
      });
    },
    '/metrics': async (res) => {
      const { contentType, text } = await metrics();
      res.writeHead(200, { 'content-type': contentType }).end(text);
    },
  };
  const open = new ClientConnections();
  const malformed = new MalformedInput(open, (socket, error) => rejectOnSocket(socket, errorResponse(error)));
  const server = createServer(
    {
      maxHeaderSize: REQUEST_HEAD_LIMIT_BYTES,
      requireHostHeader: false, // parseRequest checks it
      headersTimeout: limits.headMs,
      requestTimeout: limits.idleMs,
      connectionsCheckingInterval: Math.min(1000, limits.headMs),
    },
    (req, res) => {
      if (open.mayServe(req)) serve(routes, req, res, open);
    },
  );
  server.on('clientError', (error: Error, socket: Socket) => malformed.handle(error, socket));
  server.timeout = limits.idleMs;
  const connections = new ConnectionLimit(limits.connections);
  server.on('connection', (socket: Socket) => {
    if (connections.mayOpen()) socket.once('close', () => connections.close());
    else socket.destroy();
  });
  return server;
}

const METHODS = ['GET', 'HEAD'] as const;

function serve(
  routes: Readonly<Record<string, (res: ServerResponse) => Promise<void>>>,
  req: IncomingMessage,
  res: ServerResponse,
  open: ClientConnections,
): void {
  const head = parseRequest(req);
  if (head instanceof TollgateError) {
    open.abandoned.add(req.socket);
    rejectAndClose(res, errorResponse(head));
    return;
  }
  const route = routes[head.path];
  if (head.path === WHOLE_SERVER) {
    sendServerOptions(res, METHODS);
  } else if (route === undefined) {
    sendJson(res, 404, { error: 'The ops port has /livez, /readyz and /metrics.', code: 'not_found' });
  } else if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.setHeader('allow', METHODS.join(', '));
    sendJson(res, 405, { error: 'The ops port is read-only.', code: 'method_not_allowed' });
  } else {
    route(res).catch(() =>
      sendJson(res, 500, { error: 'The response could not be made.', code: 'internal_error' }),
    );
  }
}

function sendJson(res: ServerResponse, status: number, body: unknown): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  res
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
    .end(JSON.stringify(body));
}
