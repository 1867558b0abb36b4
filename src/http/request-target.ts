import { TollgateError } from '../errors.ts';
import { isReserved } from './reserved-paths.ts';

/** What a request asks for, taken apart without changing a byte of it. */
export interface RequestTarget {
  /** Origin form: path and query exactly as the client wrote them. */
  readonly target: string;
  /** The target without its query. */
  readonly path: string;
  /** The authority of an absolute-form target, which stands in for the Host field (RFC 9112 section 3.2.2). */
  readonly authority: string | undefined;
}

/**
 * Reads a request target in origin or absolute form. The answer is a `TollgateError` for everything else, for a path that a
 * backend could read in another way than it is written (dot segments, backslashes, control characters, bad percent-encoding: also
 * when they are percent-encoded).
 */
export function readTarget(raw: string): RequestTarget | TollgateError {
  if (raw.charCodeAt(0) === SLASH) return fromOriginForm(raw, undefined);
  const absolute = ABSOLUTE_FORM.exec(raw);
  if (absolute === null) return refuse('The request target must be a path.');
  const [, authority = '', rest = ''] = absolute;
  return fromOriginForm(rest.startsWith('/') ? rest : `/${rest}`, authority);
}

const SLASH = 0x2f;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;
const BAD_PERCENT = /%(?![0-9A-Fa-f]{2})/;
const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:\/|$)/;
const SLASHES = /\/{2,}/g;

/** What makes a second look necessary; most paths have none of it. */
const SUSPICIOUS = /[%\\]|\/[./]/;

function fromOriginForm(target: string, authority: string | undefined): RequestTarget | TollgateError {
  if (target.includes('#')) return refuse('The request target must not have a fragment.');
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  const fault = SUSPICIOUS.test(path) ? faultOf(path) : undefined;
  return fault ?? { target, path, authority };
}

function faultOf(path: string): TollgateError | undefined {
  if (BAD_PERCENT.test(path))
    return refuse('The path has a percent sign that is not followed by two digits.');
  const decoded = decodeBytes(path);
  if (decoded.includes('\\') || hasControl(decoded))
    return refuse('The path has a backslash or a control character.');
  if (DOT_SEGMENT.test(decoded)) return refuse('The path has a "." or ".." segment.');
  return undefined;
}

/**
 * Whether a path that `readTarget` let through is another spelling of a reserved path: one that a backend could take for it, and that
 * we don't.
 */
export function isReservedInDisguise(path: string): boolean {
  return SUSPICIOUS.test(path) && !isReserved(path) && isReserved(decodeBytes(path).replace(SLASHES, '/'));
}

/** Each %XX as the one character with that code: what UTF-8 it may be does not matter for what is looked for here. */
function decodeBytes(path: string): string {
  return path.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

function refuse(sentence: string): TollgateError {
  return new TollgateError('bad_request', sentence);
}
