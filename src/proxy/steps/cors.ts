import { headerLine } from '../../http/raw-head-response.ts';
import { closeAfterResponse, hasMuchToSend } from '../../http/send-error.ts';
import type { Exchange, Step } from '../exchange.ts';
import { RATE_LIMIT_HEADERS } from '../headers/rate-limit-headers.ts';

/** Any origin is allowed. */
const ANY = '*';
const ALLOW_ORIGIN = 'Access-Control-Allow-Origin';
const EXPOSED = [...RATE_LIMIT_HEADERS, 'retry-after', 'www-authenticate', 'x-request-id'].join(', ');
const EXPOSE = headerLine('Access-Control-Expose-Headers', EXPOSED);
const VARY = headerLine('Vary', 'Origin');
const PREFLIGHT_AGE_SECONDS = 600;

/**
 * Lets pages of the listed origins (`*` = any) call the backend from a browser with a consumer key. The gateway responds to their preflights
 * itself, because a browser sends them without the key; every other response gets the headers that let the page read it, errors included.
 * Responses to other callers vary by origin, or allow any as well: a cache may keep them (Fetch standard, "CORS protocol
 * and HTTP caches"). With no origins listed nothing is added and nothing of the backend's is changed.
 */
export function cors(allowedOrigins: readonly string[]): Step {
  const origins: ReadonlySet<string> = new Set(allowedOrigins);
  const any = origins.has(ANY);
  if (origins.size === 0) return (exchange) => exchange.next();
  return (exchange) => {
    const { origin } = exchange.req.headers;
    exchange.isOriginAllowed = any || (origin !== undefined && origins.has(origin));
    if (any) exchange.corsLines = headerLine(ALLOW_ORIGIN, ANY) + EXPOSE;
    else if (exchange.isOriginAllowed)
      exchange.corsLines = headerLine(ALLOW_ORIGIN, origin ?? '') + EXPOSE + VARY;
    else exchange.corsLines = VARY;
    if (origin !== undefined && exchange.isOriginAllowed && isPreflight(exchange))
      sendPreflightResponse(exchange);
    else exchange.next();
  };
}

function isPreflight({ req }: Exchange): boolean {
  return req.method === 'OPTIONS' && req.headers['access-control-request-method'] !== undefined;
}

function sendPreflightResponse(exchange: Exchange): void {
  const { req, res } = exchange;
  exchange.outcome = 'preflight';
  const headers = ['Access-Control-Allow-Methods', req.headers['access-control-request-method'] ?? ''];
  const requested = req.headers['access-control-request-headers'];
  if (requested !== undefined) headers.push('Access-Control-Allow-Headers', requested);
  headers.push('Access-Control-Max-Age', String(PREFLIGHT_AGE_SECONDS));
  if (hasMuchToSend(req)) closeAfterResponse(res);
  res.writeLines(204, undefined, exchange.ownLines(), headers);
  res.end();
}
