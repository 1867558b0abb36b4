import { closeAfterAnswer, hasMuchToSend } from '../http/answer-error.ts';
import { fieldLine } from '../http/line-response.ts';
import type { Exchange, Step } from './exchange.ts';
import { RATE_LIMIT_FIELDS } from './rate-limit-headers.ts';

/** Any origin is allowed. */
const ANY = '*';
const ALLOW_ORIGIN = 'Access-Control-Allow-Origin';
const EXPOSED = [...RATE_LIMIT_FIELDS, 'retry-after', 'www-authenticate', 'x-request-id'].join(', ');
const EXPOSE = fieldLine('Access-Control-Expose-Headers', EXPOSED);
const VARY = fieldLine('Vary', 'Origin');
const PREFLIGHT_AGE_SECONDS = 600;

/**
 * Lets pages of the listed origins (`*` = any) call the backend from a browser with a consumer key. A preflight of theirs is answered
 * here, because a browser sends it without the key; every other answer gets the fields that let the page read it, errors included.
 * Answers to anybody else say that they depend on the origin, or allow any as well: a cache may keep them (Fetch standard, "CORS protocol
 * and HTTP caches"). With no origins listed nothing is added and nothing of the backend's is changed.
 */
export function cors(allowedOrigins: readonly string[]): Step {
  const origins: ReadonlySet<string> = new Set(allowedOrigins);
  const any = origins.has(ANY);
  if (origins.size === 0) return (exchange) => exchange.next();
  return (exchange) => {
    const { origin } = exchange.req.headers;
    exchange.isOriginAllowed = any || (origin !== undefined && origins.has(origin));
    if (any) exchange.corsLines = fieldLine(ALLOW_ORIGIN, ANY) + EXPOSE;
    else if (exchange.isOriginAllowed)
      exchange.corsLines = fieldLine(ALLOW_ORIGIN, origin ?? '') + EXPOSE + VARY;
    else exchange.corsLines = VARY;
    if (origin !== undefined && exchange.isOriginAllowed && isPreflight(exchange)) answerPreflight(exchange);
    else exchange.next();
  };
}

function isPreflight({ req }: Exchange): boolean {
  return req.method === 'OPTIONS' && req.headers['access-control-request-method'] !== undefined;
}

function answerPreflight(exchange: Exchange): void {
  const { req, res } = exchange;
  exchange.outcome = 'cors_preflight';
  const granted = ['Access-Control-Allow-Methods', req.headers['access-control-request-method'] ?? ''];
  const asked = req.headers['access-control-request-headers'];
  if (asked !== undefined) granted.push('Access-Control-Allow-Headers', asked);
  granted.push('Access-Control-Max-Age', String(PREFLIGHT_AGE_SECONDS));
  if (hasMuchToSend(req)) closeAfterAnswer(res);
  res.writeLines(204, undefined, exchange.ownLines(), granted);
  res.end();
}
