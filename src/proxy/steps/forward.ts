import type { Step } from '../exchange.ts';
import { BackendCall, type BackendCallOptions } from '../forwarding/backend-call.ts';
import { proxyMiddleware, setCall } from '../forwarding/backend-transport.ts';
import { type RequestHeadersOptions, requestHeaderLines } from '../headers/request-headers.ts';

/** Where and how requests are forwarded. */
export interface ForwardOptions extends BackendCallOptions, RequestHeadersOptions {
  readonly backendUrl: URL;
}

/**
 * The last step: sends the request to the backend and streams the response. What is sent is read from the request before the middleware
 * sees it, which writes to its headers.
 */
export function forward(options: ForwardOptions): Step {
  const middleware = proxyMiddleware(options.backendUrl);
  return (exchange) => {
    if (exchange.isClosed) return;
    const { req, res } = exchange;
    setCall(req, new BackendCall(exchange, requestHeaderLines(exchange, options), options));
    // The target is in the exchange, byte for byte; the middleware would parse what it finds here, and reject some of it.
    req.url = '';
    // It calls back a few microtasks later.
    middleware(req, res).catch((error: unknown) => exchange.fail(error));
  };
}
