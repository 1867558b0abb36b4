import { TollgateError } from '../../errors.ts';
import { headTooLarge } from './parse-request.ts';

/**
 * The error response for a client whose bytes Node's parser rejected. Undefined when it can't be sent: the connection failed, or the
 * client closed it.
 */
export function parserError(error: Error): TollgateError | undefined {
  const code = 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headTooLarge(error);
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new TollgateError('body_too_large', 'The chunk extensions of the body are too large.', error);
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new TollgateError('request_timeout', 'The head of the request did not arrive in time.', error);
    case 'HPE_INVALID_METHOD':
      return new TollgateError(
        'bad_request',
        'The request does not begin with a known method in capitals.',
        error,
      );
    case 'HPE_INVALID_VERSION':
    case 'HPE_PAUSED_H2_UPGRADE':
      return new TollgateError(
        'http_version_not_supported',
        'Only HTTP/1.0 and HTTP/1.1 are understood.',
        error,
      );
    case 'HPE_INVALID_TRANSFER_ENCODING':
      // The parser has one code for a coding that it does not know and for one beside a Content-Length.
      if (!error.message.includes('Content-Length')) {
        return new TollgateError(
          'not_implemented',
          'The only transfer coding understood is "chunked".',
          error,
        );
      }
      break;
  }
  if (!code.startsWith('HPE_')) return undefined;
  return new TollgateError('bad_request', 'The request is not well-formed HTTP/1.1.', error);
}
