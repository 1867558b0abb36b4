import { TollgateError } from '../../errors.ts';
import type { RequestTarget } from '../../http/parsed-request.ts';
import { TARGET_LIMIT_BYTES } from './head-limits.ts';

/** The target of `OPTIONS *`, which asks for the server's own options (RFC 9112 section 3.2.4). No path begins like it. */
export const WHOLE_SERVER = '*';

/**
 * Reads a request target in origin or absolute form, or `*` of OPTIONS. Returns a `TollgateError` for any other form, and for a path that a backend could
 * read differently: with dot segments, backslashes or control characters, plain or percent-encoded, or with bad percent-encoding.
 */
export function readTarget(raw: string, method?: string): RequestTarget | TollgateError {
  if (raw.length > TARGET_LIMIT_BYTES) {
    return new TollgateError(
      'target_too_long',
      `The request target is longer than ${TARGET_LIMIT_BYTES / 1024} KiB.`,
    );
  }
  if (raw.charCodeAt(0) === SLASH) return fromOriginForm(raw, undefined);
  if (raw === WHOLE_SERVER && method === 'OPTIONS') return wholeServer(undefined);
  const absolute = ABSOLUTE_FORM.exec(raw);
  if (absolute === null) return reject('The request target must be a path.');
  const [, authority = '', rest = ''] = absolute;
  if (rest === '' && method === 'OPTIONS') return wholeServer(authority);
  return fromOriginForm(rest.startsWith('/') ? rest : `/${rest}`, authority);
}

function wholeServer(authority: string | undefined): RequestTarget {
  return { target: WHOLE_SERVER, path: WHOLE_SERVER, decodedPath: undefined, authority };
}

const SLASH = 0x2f;
const PERCENT = 0x25;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;
const BAD_PERCENT = /%(?![0-9A-Fa-f]{2})/;
/** Also with parameters, as in `..;a=b`: servlet containers remove them before they resolve the segments. */
const DOT_SEGMENT = /(?:^|\/)\.{1,2}(?:[/;]|$)/;
const SLASHES = /\/{2,}/g;

/** Matches a path that must be decoded and checked, which is rare. */
const SUSPICIOUS = /[%\\]|\/[./]/;

function fromOriginForm(target: string, authority: string | undefined): RequestTarget | TollgateError {
  if (target.includes('#')) return reject('The request target must not have a fragment.');
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  if (!SUSPICIOUS.test(path)) return { target, path, decodedPath: undefined, authority };
  if (BAD_PERCENT.test(path))
    return reject('The path has a percent sign that is not followed by two digits.');
  const decodedPath = decodeBytes(path);
  return decodedFault(decodedPath) ?? { target, path, decodedPath, authority };
}

function decodedFault(decoded: string): TollgateError | undefined {
  if (decoded.includes('\\') || hasControl(decoded))
    return reject('The path has a backslash or a control character.');
  if (DOT_SEGMENT.test(decoded)) return reject('The path has a "." or ".." segment.');
  return undefined;
}

/**
 * Whether a path that `readTarget` accepted is another spelling of a reserved path: a backend could take it for the reserved path, but
 * the gateway does not.
 */
export function isReservedInDisguise(
  { path, decodedPath }: Pick<RequestTarget, 'path' | 'decodedPath'>,
  isReserved: (path: string) => boolean,
): boolean {
  return decodedPath !== undefined && !isReserved(path) && isReserved(decodedPath.replace(SLASHES, '/'));
}

/** Replaces each %XX (all are valid) by the character with that code. Whether the bytes are UTF-8 does not matter here. */
function decodeBytes(path: string): string {
  if (!path.includes('%')) return path;
  const bytes = Buffer.from(path, 'latin1');
  let length = 0;
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i] ?? 0;
    bytes[length] = byte === PERCENT ? hexDigit(bytes[i + 1]) * 16 + hexDigit(bytes[i + 2]) : byte;
    if (byte === PERCENT) i += 2;
    length += 1;
  }
  return bytes.toString('latin1', 0, length);
}

/** The value of the ASCII hex digit `code`. */
function hexDigit(code = 0): number {
  return code <= 0x39 ? code - 0x30 : (code | 0x20) - 0x57;
}

function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

function reject(sentence: string): TollgateError {
  return new TollgateError('bad_request', sentence);
}
