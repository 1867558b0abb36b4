import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyMiddleware, type Plugin, type RequestHandler } from 'http-proxy-middleware';
import type { BackendCall } from './backend-call.ts';

/** Where a request keeps its call: a weak map of requests in flight would cost each collection of garbage more. */
const CALL = Symbol('call');

/** A request on its way through the middleware. */
export type ProxiedRequest = IncomingMessage & { [CALL]?: BackendCall };

/** Names the call that a request stands for. */
export function setCall(req: ProxiedRequest, call: BackendCall): void {
  req[CALL] = call;
}

/**
 * A plugin of http-proxy-middleware that replaces its transport: the request is sent by the `BackendCall` that `setCall` named, on a
 * connection of the `BackendPool`. The middleware's own transport keeps few of the rules for headers and framing that `docs/http.md` lists,
 * and Node's agent behind it can hand a response to the wrong request.
 */
function backendTransport(): Plugin {
  return (proxyServer) => {
    // In place of all passes of httpxy: before them it would copy the options, make a promise and listen to the response.
    proxyServer.web = (req, res) => {
      res.on('error', destroyOnError);
      (req as ProxiedRequest)[CALL]?.start();
      return STARTED;
    };
    // The same for those of the middleware. Nothing of ours throws in there.
    proxyServer.on('error', (_error, _req, res) => {
      res?.destroy();
    });
  };
}

const STARTED = Promise.resolve();

/** Without a listener an error event would end the process. One function for all responses, which calls it with the response as `this`. */
function destroyOnError(this: ServerResponse): void {
  this.destroy();
}

/**
 * The middleware for one backend. Its own plugins are ejected, because the gateway sends errors and writes the log itself. `ws` stays off: it would
 * send upgrades to the backend past authentication and limit.
 */
export function proxyMiddleware(backend: URL): RequestHandler {
  return createProxyMiddleware({
    // An object is taken as it is; a URL or a string would be parsed again for every request.
    target: {
      protocol: backend.protocol,
      host: backend.hostname,
      port: backend.port || defaultPort(backend),
    },
    // Matches every path without parsing it, together with the empty `req.url` that `forward` sets.
    pathFilter: '',
    ejectPlugins: true,
    plugins: [backendTransport()],
  });
}

function defaultPort({ protocol }: URL): string {
  return protocol === 'https:' ? '443' : '80';
}
