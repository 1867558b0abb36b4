import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyMiddleware, type Plugin, type RequestHandler } from 'http-proxy-middleware';
import type { Step } from '../exchange.ts';
import { BackendCall, type BackendCallOptions } from '../forwarding/backend-call.ts';
import { type RequestHeadersOptions, requestHeaderLines } from '../headers/request-headers.ts';

/** Where and how requests are forwarded. */
export interface ForwardOptions extends BackendCallOptions, RequestHeadersOptions {
  readonly backendUrl: URL;
}

/** Where a request keeps its call: a weak map of requests in flight would cost each collection of garbage more. */
const CALL = Symbol('call');

/** A request on its way through the middleware. */
type ProxiedRequest = IncomingMessage & { [CALL]?: BackendCall };

/**
 * The last step: sends the request to the backend and streams the response. What is sent is read from the request before the middleware
 * sees it, which writes to its headers.
 */
export function forward(options: ForwardOptions): Step {
  const middleware = proxyMiddleware(options.backendUrl);
  return (exchange) => {
    if (exchange.isClosed) return;
    const { res } = exchange;
    const req: ProxiedRequest = exchange.req;
    req[CALL] = new BackendCall(exchange, requestHeaderLines(exchange, options), options);
    // The target is in the exchange, byte for byte; the middleware would parse what it finds here, and reject some of it.
    req.url = '';
    // It calls back a few microtasks later.
    middleware(req, res).catch((error: unknown) => exchange.fail(error));
  };
}

/**
 * The middleware for one backend. Its own plugins are ejected, because the gateway sends errors and writes the log itself. `ws` stays off: it would
 * send upgrades to the backend past authentication and limit.
 */
function proxyMiddleware(backend: URL): RequestHandler {
  return createProxyMiddleware({
    // An object is taken as it is; a URL or a string would be parsed again for every request.
    target: {
      protocol: backend.protocol,
      host: backend.hostname,
      port: backend.port || defaultPort(backend),
    },
    // Matches every path without parsing it, together with the empty `req.url` of the step.
    pathFilter: '',
    ejectPlugins: true,
    plugins: [backendTransport()],
  });
}

function defaultPort({ protocol }: URL): string {
  return protocol === 'https:' ? '443' : '80';
}

/**
 * A plugin of http-proxy-middleware that replaces its transport: the request is sent by its `BackendCall`, on a connection of the
 * `BackendPool`. The middleware's own transport keeps few of the rules for headers and framing that `docs/http.md` lists, and Node's agent
 * behind it can hand a response to the wrong request.
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
