import { type HeaderName, memoizeByName } from '../../backend/header-names.ts';
import { headerValue, type ResponseHead } from '../../backend/response-head.ts';
import { decidesHead } from '../../http/raw-head-response.ts';
import type { Exchange } from '../exchange.ts';
import { HOP_BY_HOP_HEADERS, headersNamedBy } from './hop-by-hop.ts';
import { KEY_EXPIRY_HEADER } from './key-expiry.ts';
import { RATE_LIMIT_HEADERS } from './rate-limit-headers.ts';
import { COST_HEADER } from './reported-cost.ts';

/** The headers of a response to the client. `decisive` is a flat list of those that decide its framing; `lines` has the others. */
export interface ResponseHeaders {
  readonly lines: string;
  readonly decisive: string[];
  /** The lines have a `Date`. */
  readonly hasDate: boolean;
}

/** The headers of the response to the client, in one pass over the backend's: case, order and repetition kept, then the gateway's own. */
export function responseHeaders(head: ResponseHead, exchange: Exchange): ResponseHeaders {
  const { names } = head;
  const named = headersNamedBy(head.connection);
  let decisive: string[] = [];
  let lines = '';
  let hasDate = false;
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (name === undefined) continue;
    const treatment = treatmentOf(name.text);
    if (isDropped(name, treatment, head, named) || (treatment.isCors && exchange.isOriginAllowed)) continue;
    const line = head.lines[i] ?? '';
    if (!treatment.isDecisive) lines += line;
    // There is seldom more than one, and an array that grows would have room for many.
    else if (decisive.length === 0) decisive = [name.text, headerValue(name, line)];
    else decisive.push(name.text, headerValue(name, line));
    hasDate ||= treatment.isDate;
  }
  return { lines: lines + exchange.ownLines(), decisive, hasDate };
}

/** The headers of an interim response, a flat list, without those that end at this hop. */
export function interimHeaders(head: ResponseHead): string[] {
  const named = headersNamedBy(head.connection);
  return head.names.flatMap((name, i) =>
    isDropped(name, treatmentOf(name.text), head, named)
      ? []
      : [name.text, headerValue(name, head.lines[i] ?? '')],
  );
}

/** How a header of the backend is treated, by its name. */
interface Treatment {
  /** Never forwarded as received: it ends at this hop, or the gateway writes its own. */
  readonly isReplaced: boolean;
  /** Replaced by the gateway's own if it allows the origin. Not `Access-Control-Expose-Headers`: a backend may expose more headers. */
  readonly isCors: boolean;
  /** Decides how the response to the client is framed. */
  readonly isDecisive: boolean;
  readonly isDate: boolean;
}

const REPLACED: ReadonlySet<string> = new Set<string>([
  ...HOP_BY_HOP_HEADERS,
  ...RATE_LIMIT_HEADERS,
  COST_HEADER,
  KEY_EXPIRY_HEADER.toLowerCase(),
  'x-request-id',
]);

const CORS: ReadonlySet<string> = new Set([
  'access-control-allow-origin',
  'access-control-allow-credentials',
]);

const treatmentOf = memoizeByName((text): Treatment => {
  const lowerCase = text.toLowerCase();
  return {
    isReplaced: REPLACED.has(lowerCase),
    isCors: CORS.has(lowerCase),
    isDecisive: decidesHead(lowerCase),
    isDate: lowerCase === 'date',
  };
});

/** Replaced, or named by `Connection`, or a length on a response without a body (RFC 9110 section 8.6). */
function isDropped(
  name: HeaderName,
  { isReplaced }: Treatment,
  { status }: ResponseHead,
  named: ReadonlySet<string> | undefined,
): boolean {
  return (
    isReplaced ||
    (name.framing === 'content-length' && (status < 200 || status === 204)) ||
    named?.has(name.lowerCase) === true
  );
}
