import type { FailedCredentials } from '../http/credentials/failed-credentials.ts';
import { headerLine } from '../http/raw-head-response.ts';
import type { KeyOrigins } from '../keys/cache/key-origins.ts';
import type { OriginList } from '../keys/origin-list.ts';
import type { Exchange } from './exchange.ts';
import { KEY_EXPIRY_HEADER } from './headers/key-expiry.ts';
import { RATE_LIMIT_HEADERS } from './headers/rate-limit-headers.ts';

/** What decides which pages may read responses. */
export interface CrossOriginOptions {
  /** Origins whose pages may call with any key that names none; `*` = any. */
  readonly corsAllowedOrigins: readonly string[];
  /** The origins that keys name. */
  readonly keyOrigins: Pick<KeyOrigins, 'find' | 'knows'>;
  /** Names clients. */
  readonly failedCredentials: Pick<FailedCredentials, 'clientOf'>;
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
 * Which pages may read the response to a request: those of the setting, or, where the key names origins, those alone. The headers that say so
 * are on every response of the gateway's, errors included.
 *
 * Responses to others vary by origin, or allow any as well: a cache may keep them (Fetch standard, "CORS protocol and HTTP caches"). With
 * no origins in the setting, nothing is added for a key that names none, and nothing of the backend's is changed.
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

  /** Allows what the setting does. */
  followSetting(exchange: Exchange): void {
    const { origin } = exchange.req.headers;
    exchange.isOriginAllowed = this.#isAny || (origin !== undefined && this.#origins.has(origin));
    if (this.#origins.size === 0) exchange.corsLines = '';
    else if (this.#isAny) exchange.corsLines = headerLine(ALLOW_ORIGIN, ANY) + EXPOSE;
    else exchange.corsLines = exchange.isOriginAllowed ? linesFor(origin ?? '') : VARY;
  }

  /** Allows what a key does that names origins, and nothing else. */
  followKey(exchange: Exchange, origins: OriginList): void {
    const { origin } = exchange.req.headers;
    exchange.isOriginAllowed = origin !== undefined && origins.includes(origin);
    exchange.corsLines = exchange.isOriginAllowed ? linesFor(origin ?? '') : VARY;
  }

  /** For a request without a key, or with a wrong one: allows what the setting or some key does, and then calls `followed`. */
  followAnyKey(exchange: Exchange, followed: (error: Error | null) => void): void {
    const { origin } = exchange.req.headers;
    if (origin === undefined || exchange.isOriginAllowed) {
      followed(null);
      return;
    }
    const client = this.#options.failedCredentials.clientOf(exchange.req);
    this.#options.keyOrigins.find(origin, client, (error, isAllowed) => {
      if (isAllowed) allow(exchange, origin);
      followed(error);
    });
  }

  /** The same without a look-up, for when the record store does not respond: allows what some key did when it was last asked for. */
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
