import { TollgateError } from '../errors.ts';
import { closeAfterResponse } from '../http/connections/unread-body.ts';
import type { ErrorResponse } from '../http/errors/error-responses.ts';
import { headerLine, type RawHeadResponse } from '../http/node-internals.ts';
import type { ParsedRequest } from '../http/parsed-request.ts';
import type { Outcome } from '../observability/outcomes.ts';
import { type EmptyResponse, Exchange } from '../proxy/exchange.ts';
import { isPreflight } from '../proxy/steps/cors.ts';

export const NO_STORE_LINE = headerLine('Cache-Control', 'no-store');

/**
 * A request that another gateway asks about, on its way through the steps of a proxied request. `req` has the original's method, and `head`
 * its target.
 */
export class AuthorizeExchange extends Exchange {
  /** The status of a rejection, whatever was sent to the gateway; 0 = not rejected. */
  #rejectedWith = 0;

  override get status(): number {
    const status = super.status;
    return status === 0 || this.#rejectedWith === 0 ? status : this.#rejectedWith;
  }

  /** The browser's question whether a page may make a request has no credentials that could be wrong: 403 in place of 401. */
  override reject(error: TollgateError): void {
    super.reject(isPreflight(this) && UNAUTHENTICATED.has(error.code) ? notForPages() : error);
  }

  override respondWith(response: ErrorResponse, outcome: Outcome): void {
    if (this.hasResponse) return;
    this.#rejectedWith = response.status;
    closeUnlessRead(this.res, this.head);
    super.respondWith(this.format(response), outcome);
  }

  /** Every response without a body is an approval. */
  override respondEmpty({ headers, ...response }: EmptyResponse): void {
    if (this.hasResponse) return;
    closeUnlessRead(this.res, this.head);
    super.respondEmpty({ ...response, status: 200, headers: ['Content-Length', '0', ...headers] });
  }

  override ownLines(): string {
    return NO_STORE_LINE + super.ownLines();
  }

  /** A rejection as the gateway gets it. */
  protected format(response: ErrorResponse): ErrorResponse {
    return response;
  }
}

/** The same for a gateway that knows only 401 and 403. */
export class RejectedAs403Exchange extends AuthorizeExchange {
  protected override format(response: ErrorResponse): ErrorResponse {
    return rejectedAs403(response);
  }
}

/** The rejection with 403 in place of all but 401, and with the true status and the body in fields: the gateway drops the body. */
export function rejectedAs403({ status, headers, body }: ErrorResponse): ErrorResponse {
  return {
    status: status === 401 ? 401 : 403,
    headers: { ...headers, 'Tollgate-Status': String(status), 'Tollgate-Body': inAscii(body) },
    body,
  };
}

/** A gateway may leave in the length of a body that it never sends: the next request must not be taken for that body. */
export function closeUnlessRead(res: RawHeadResponse, { body }: ParsedRequest): void {
  if (body !== 'none' && !res.req.complete) closeAfterResponse(res);
}

const UNAUTHENTICATED: ReadonlySet<string> = new Set([
  'missing_api_key',
  'invalid_api_key',
  'key_disabled',
  'key_expired',
]);

function notForPages(): TollgateError {
  return new TollgateError('origin_not_allowed', 'Pages of this origin may not make such requests.');
}

/** JSON in one line of ASCII: `JSON.stringify` escapes control characters only. */
function inAscii(json: string): string {
  return json.replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
