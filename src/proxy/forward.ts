import type { IncomingMessage } from 'node:http';
import { BackendCall, type BackendCallOptions } from './backend-call.ts';
import type { Exchange, Step } from './exchange.ts';
import { type RequestFieldsOptions, requestFields } from './request-fields.ts';
import { proxyMiddleware } from './transport-pass.ts';

/** Where and how requests are forwarded. */
export interface ForwardOptions extends BackendCallOptions, RequestFieldsOptions {
  readonly backendUrl: URL;
}

/** Where the request of an exchange keeps it: a weak map of requests in flight would cost each collection of garbage more. */
const EXCHANGE = Symbol('exchange');
type Carrier = IncomingMessage & { [EXCHANGE]?: Exchange };

/** The last step: sends the request to the backend and streams the answer. */
export function forward(options: ForwardOptions): Step {
  const middleware = proxyMiddleware(options.backendUrl, (req) => {
    const exchange = (req as Carrier)[EXCHANGE];
    // The middleware calls back a few microtasks later: the client may have gone meanwhile.
    if (exchange === undefined || exchange.isClosed) return;
    new BackendCall(exchange, requestFields(exchange, options), options).start();
  });
  return (exchange) => {
    if (exchange.isClosed) return;
    const { req, res } = exchange;
    (req as Carrier)[EXCHANGE] = exchange;
    // The target is in the exchange, byte for byte; the middleware would parse what it finds here, and refuse some of it.
    req.url = '';
    void middleware(req, res);
  };
}
