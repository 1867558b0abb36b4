import type { IncomingMessage } from 'node:http';
import { BackendCall, type BackendCallOptions } from './backend-call.ts';
import type { Exchange, Step } from './exchange.ts';
import { type RequestFieldsOptions, requestFields } from './request-fields.ts';
import { proxyMiddleware } from './undici-transport.ts';

/** Where and how requests are forwarded. */
export interface ForwardOptions extends BackendCallOptions, RequestFieldsOptions {
  readonly backendUrl: URL;
}

/** The last step: sends the request to the backend and streams the answer. */
export function forward(options: ForwardOptions): Step {
  const exchanges = new WeakMap<IncomingMessage, Exchange>();
  const middleware = proxyMiddleware(options.backendUrl, (req) => {
    const exchange = exchanges.get(req);
    // The middleware calls back a few microtasks later: the client may have gone meanwhile.
    if (exchange === undefined || exchange.isClosed) return;
    new BackendCall(exchange, requestFields(exchange, options), options).start();
  });
  return (exchange) => {
    if (exchange.isClosed) return;
    const { req, res } = exchange;
    exchanges.set(req, exchange);
    // The target is in the exchange, byte for byte; the middleware would parse what it finds here, and refuse some of it.
    req.url = '';
    void middleware(req, res);
  };
}
