import type { CrossOrigin } from '../cross-origin.ts';
import type { Exchange, Step } from '../exchange.ts';
import { missingKey, unavailable } from './current-key.ts';

const PREFLIGHT_AGE_SECONDS = 600;

/**
 * Lets pages of other origins call the backend from a browser with a consumer key. The gateway responds to preflights itself, because a
 * browser sends them without the key, and allows the origins of the setting and of all keys. Which pages may read the response to the
 * actual request depends on its key.
 */
export function cors(crossOrigin: CrossOrigin): Step {
  return (exchange) => {
    crossOrigin.followSetting(exchange);
    if (!isPreflight(exchange)) exchange.next();
    else if (exchange.isOriginAllowed) sendPreflightResponse(exchange);
    else if (exchange.req.headers.authorization !== undefined) exchange.next();
    else crossOrigin.followAnyKey(exchange, (error) => respond(exchange, error));
  };
}

/** Never throws: it may be called after the step has returned. */
function respond(exchange: Exchange, error: Error | null): void {
  try {
    if (error) exchange.reject(unavailable(error));
    else if (exchange.isOriginAllowed) sendPreflightResponse(exchange);
    else exchange.reject(missingKey(exchange));
  } catch (fault) {
    exchange.fail(fault);
  }
}

/** Whether a browser asks if a page may make a request. */
export function isPreflight({ req }: Pick<Exchange, 'req'>): boolean {
  return (
    req.method === 'OPTIONS' &&
    req.headers.origin !== undefined &&
    req.headers['access-control-request-method'] !== undefined
  );
}

function sendPreflightResponse(exchange: Exchange): void {
  const { req } = exchange;
  exchange.outcome = 'preflight';
  const headers = ['Access-Control-Allow-Methods', req.headers['access-control-request-method'] ?? ''];
  const requested = req.headers['access-control-request-headers'];
  if (requested !== undefined) headers.push('Access-Control-Allow-Headers', requested);
  headers.push('Access-Control-Max-Age', String(PREFLIGHT_AGE_SECONDS));
  exchange.respondEmpty(204, headers);
}
