import type { IncomingMessage, ServerResponse } from 'node:http';
import { createProxyMiddleware, type Plugin, type RequestHandler } from 'http-proxy-middleware';
import type { Step } from '../exchange.ts';
import { BackendCall, type BackendCallOptions } from '../forwarding/backend-call.ts';
import { type RequestHeadersOptions, requestHeaderLines } from '../headers/request-headers.ts';

/** Where and how requests are forwarded. */
export interface ForwardOptions extends BackendCallOptions, RequestHeadersOptions {
  readonly backendUrl: URL;
}

/** Property of a request for its call: a weak map of requests in flight would slow down each garbage collection. */
const CALL = Symbol('call');

/** A request on its way through the middleware. */
type ProxiedRequest = IncomingMessage & { [CALL]?: BackendCall };

/**
 * The last step: sends the request to the backend and streams the response. The headers to send are read before the middleware runs,
 * because it writes to the request's headers.
 */
export function forward(options: ForwardOptions): Step {
  const middleware = proxyMiddleware(options.backendUrl);
  return (exchange) => {
    if (exchange.isClosed) return;
    const { res } = exchange;
    const req: ProxiedRequest = exchange.req;
    req[CALL] = new BackendCall(exchange, requestHeaderLines(exchange, options), options);
    // The exchange has the target byte for byte. The middleware would parse this URL, and reject some.
    req.url = '';
    // The middleware starts the call a few microtasks later.
    middleware(req, res).catch((error: unknown) => exchange.fail(error));
  };
}

/**
 * The middleware for one backend. Its own plugins are ejected, because the gateway sends errors and writes the log itself. `ws` stays off:
 * it would send upgrades to the backend past authentication and limit.
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
    // Replaces `web` of httpxy, which would copy the options, make a promise and listen to the response before its passes run.
    proxyServer.web = (req, res) => {
      res.on('error', destroyOnError);
      (req as ProxiedRequest)[CALL]?.start();
      return STARTED;
    };
    // Errors of the middleware end the response too. No code of the gateway throws in there.
    proxyServer.on('error', (_error, _req, res) => {
      res?.destroy();
    });
  };
}

const STARTED = Promise.resolve();

/** Without a listener an error event would end the process. One function for all responses: `this` is the response. */
function destroyOnError(this: ServerResponse): void {
  this.destroy();
}
