import type { IncomingMessage } from 'node:http';
import { type ErrorResponse, type FailedRequest, failureOf, jsonResponse } from './error-responses.ts';

const PROBLEM = 'application/problem+json';
const JSON_TYPE = 'application/json';

/** The response to an error in the format that the request's `Accept` prefers: problem details (RFC 9457) or our own JSON. */
export function negotiatedError(error: unknown, req: IncomingMessage): ErrorResponse {
  const failure = failureOf(error);
  const { status, headers, body } = prefersProblem(req.headers.accept)
    ? problemResponse(failure)
    : jsonResponse(failure);
  return { status, headers: { ...headers, Vary: 'Accept' }, body };
}

/** Every code is a separate problem type; its URN is only a name. */
function problemResponse({ status, headers, fields }: FailedRequest): ErrorResponse {
  const { error, code, ...others } = fields;
  const words = code.replaceAll('_', ' ');
  const problem = {
    type: `urn:problem-type:tollgate:${code}`,
    title: words.charAt(0).toUpperCase() + words.slice(1),
    status,
    detail: error,
    code,
    ...others,
  };
  return { status, headers: { ...headers, 'Content-Type': PROBLEM }, body: JSON.stringify(problem) };
}

/**
 * Whether an `Accept` value asks for problem details: it names their media type, and gives JSON no higher quality. A wildcard does not
 * ask for them, since a client that sends one may not know the format.
 */
export function prefersProblem(accept: string | undefined): boolean {
  if (accept === undefined || !accept.toLowerCase().includes(PROBLEM)) return false;
  const ranges = rangesOf(accept);
  const quality = ranges.get(PROBLEM) ?? 0;
  const ofJson = ranges.get(JSON_TYPE) ?? ranges.get('application/*') ?? ranges.get('*/*') ?? 0;
  return quality > 0 && quality >= ofJson;
}

/**
 * The elements of a list. A comma in a quoted string does not end an element. A string without an end goes on to that of the list: in linear
 * time, which a search for the end of each quote would not take.
 */
const ELEMENTS = /(?:"(?:[^"\\]|\\.)*(?:"|\\?$)|[^",])+/gs;
const QUALITY = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** The quality of each media range (RFC 9110 section 12.5.1): the highest one if a range is repeated. */
function rangesOf(accept: string): ReadonlyMap<string, number> {
  const ranges = new Map<string, number>();
  for (const element of accept.match(ELEMENTS) ?? []) {
    const [range = '', ...parameters] = element
      .toLowerCase()
      .split(';')
      .map((part) => part.trim());
    const written = parameters.find((parameter) => parameter.startsWith('q='));
    // A malformed quality is ignored: the default, 1, applies.
    const quality = Number(QUALITY.exec(written ?? '')?.[1] ?? 1);
    ranges.set(range, Math.max(ranges.get(range) ?? 0, quality));
  }
  return ranges;
}
