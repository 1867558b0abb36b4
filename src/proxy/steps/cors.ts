import type { FailedCredentials } from '../../http/credentials/failed-credentials.ts';
import { headerLine } from '../../http/node-internals.ts';
import type { KeyOrigins } from '../../keys/cache/key-origins.ts';
import type { OriginList } from '../../keys/origin-list.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Exchange, Step } from '../exchange.ts';
import { KEY_EXPIRY_HEADER, RATE_LIMIT_HEADERS } from '../headers/response-headers.ts';
import { missingKey, unavailable } from '../key-errors.ts';
import { untilDeadline } from '../look-up-deadline.ts';

/** What decides which pages may read responses. */
export interface CrossOriginOptions {
  /** Origins whose pages may use any key that is not restricted to origins; `*` = any. */
  readonly corsAllowedOrigins: readonly string[];
  /** The origins to which keys are restricted. */
  readonly keyOrigins: Pick<KeyOrigins, 'find' | 'knows'>;
  /** Identifies clients, so that they take turns with look-ups of origins. */
  readonly failedCredentials: Pick<FailedCredentials, 'clientOf'>;
  readonly clock: Clock;
}

/** Any origin is allowed. */
const ANY = '*';
const ALLOW_ORIGIN = 'Access-Control-Allow-Origin';
const EXPOSED = [
  ...RATE_LIMIT_HEADERS,
  KEY_EXPIRY_HEADER,
  'retry-after',
  'www-authenticate',
  'x-request-id',
].join(', ');
const EXPOSE = headerLine('Access-Control-Expose-Headers', EXPOSED);
const VARY = headerLine('Vary', 'Origin');

/**
 * Decides which pages may read a response: those of the key's origins if the key is restricted to any, otherwise those of the setting. All
 * responses get the CORS headers, errors included.
 *
 * Unless any origin is allowed, a response to another page has `Vary: Origin`, because a cache may keep it (Fetch standard, "CORS
 * protocol and HTTP caches"). If neither setting nor key has origins, nothing is added, and the backend's headers stay as they are.
 */
export class CrossOrigin {
  readonly #options: CrossOriginOptions;
  readonly #origins: ReadonlySet<string>;
  readonly #isAny: boolean;

  constructor(options: CrossOriginOptions) {
    this.#options = options;
    this.#origins = new Set(options.corsAllowedOrigins);
    this.#isAny = this.#origins.has(ANY);
  }

  /** Allows the origins of the setting. */
  followSetting(exchange: Exchange): void {
    const { origin } = exchange.req.headers;
    exchange.isOriginAllowed = this.#isAny || (origin !== undefined && this.#origins.has(origin));
    if (this.#origins.size === 0) exchange.corsLines = '';
    else if (this.#isAny) exchange.corsLines = headerLine(ALLOW_ORIGIN, ANY) + EXPOSE;
    else exchange.corsLines = exchange.isOriginAllowed ? linesFor(origin ?? '') : VARY;
  }

  /** Allows the origins to which a key is restricted, and no others. */
  followKey(exchange: Exchange, origins: OriginList): void {
    const { origin } = exchange.req.headers;
    exchange.isOriginAllowed = origin !== undefined && origins.includes(origin);
    exchange.corsLines = exchange.isOriginAllowed ? linesFor(origin ?? '') : VARY;
  }

  /** For a request without a valid key: allows the origins of the setting and of all keys, then calls `followed`. */
  followAnyKey(exchange: Exchange, followed: (error: Error | null) => void): void {
    const { origin } = exchange.req.headers;
    if (origin === undefined || exchange.isOriginAllowed) {
      followed(null);
      return;
    }
    const { keyOrigins, failedCredentials, clock } = this.#options;
    const client = failedCredentials.clientOf(exchange.req);
    const ended = untilDeadline<boolean>(exchange, clock, (error, isAllowed = keyOrigins.knows(origin)) => {
      if (isAllowed) allow(exchange, origin);
      followed(isAllowed ? null : error);
    });
    keyOrigins.find(origin, client, ended);
  }

  /** Like `followAnyKey` without a look-up, for when the record store does not respond: goes by earlier results. */
  followKnownOrigins(exchange: Exchange): void {
    const { origin } = exchange.req.headers;
    if (origin !== undefined && !exchange.isOriginAllowed && this.#options.keyOrigins.knows(origin))
      allow(exchange, origin);
  }
}

function allow(exchange: Exchange, origin: string): void {
  exchange.isOriginAllowed = true;
  exchange.corsLines = linesFor(origin);
}

function linesFor(origin: string): string {
  return headerLine(ALLOW_ORIGIN, origin) + EXPOSE + VARY;
}

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
  const headers = ['Access-Control-Allow-Methods', req.headers['access-control-request-method'] ?? ''];
  const requested = req.headers['access-control-request-headers'];
  if (requested !== undefined) headers.push('Access-Control-Allow-Headers', requested);
  headers.push('Access-Control-Max-Age', String(PREFLIGHT_AGE_SECONDS));
  exchange.respondEmpty({ status: 204, outcome: 'preflight', headers, lines: '' });
}
