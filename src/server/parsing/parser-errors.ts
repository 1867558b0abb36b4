import { TollgateError } from '../../errors.ts';
import { headTooLarge, malformedVersion, versionNotSupported } from './parse-request.ts';

const HEAD_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

/**
 * The error response for a client whose bytes Node's parser rejected. Undefined when it can't be sent: the connection failed, or the
 * client closed it.
 */
export function parserError(error: Error): TollgateError | undefined {
  const code = codeOf(error);
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headTooLarge(error);
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new TollgateError('body_too_large', 'The chunk extensions of the body are too large.', error);
    case HEAD_TIMEOUT:
      return new TollgateError('request_timeout', 'The head of the request did not arrive in time.', error);
    case 'HPE_INVALID_METHOD':
      return new TollgateError(
        'bad_request',
        'The request does not begin with a known method in capitals.',
        error,
      );
    case 'HPE_INVALID_VERSION':
      return hasOtherMajorVersion(error) ? versionNotSupported(error) : malformedVersion(error);
    case 'HPE_PAUSED_H2_UPGRADE':
      return versionNotSupported(error);
  }
  if (!code.startsWith('HPE_')) return undefined;
  return new TollgateError('bad_request', 'The request is not well-formed HTTP/1.1.', error);
}

/** Whether a head did not arrive in time. */
export function isHeadTimeout(error: Error): boolean {
  return codeOf(error) === HEAD_TIMEOUT;
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : '';
}

/** The parser's reason for a version of two digits that it does not know. For all other faults of a version it has other reasons. */
const UNKNOWN_VERSION = 'Invalid HTTP version';
const VERSION_LENGTH = '1.1'.length;
const CR = 0x0d;

/**
 * Whether the parser stopped at a well-formed version whose major version is not 1. What of the version came in an earlier chunk is not
 * seen, and counts as another major version.
 */
function hasOtherMajorVersion(error: Error & { rawPacket?: unknown; bytesParsed?: unknown }): boolean {
  const { message, rawPacket, bytesParsed } = error;
  if (!message.endsWith(UNKNOWN_VERSION) || !Buffer.isBuffer(rawPacket)) return false;
  const end = Number(bytesParsed);
  const next = rawPacket[end];
  if (next !== undefined && next !== CR) return false;
  return !/^1\.\d$/.test(rawPacket.toString('latin1', Math.max(0, end - VERSION_LENGTH), end));
}
