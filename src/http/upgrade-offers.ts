import type { IncomingMessage } from 'node:http';
import { hasOption } from './connection-options.ts';
import { bytesBeingParsed } from './parsed-bytes.ts';

/** Only WebSocket is upgraded; another `Upgrade` field is as if it were not there (RFC 9110 section 7.8). */
export function isWebSocketUpgrade(req: IncomingMessage): boolean {
  return (
    req.httpVersionMinor === 1 &&
    req.headers.upgrade?.toLowerCase() === 'websocket' &&
    // Node's parser takes `Proxy-Connection`, which is no field of HTTP, for the same.
    hasOption(req.headers.connection, 'upgrade')
  );
}

const END_OF_HEAD = '\r\n\r\n';
const LF = 0x0a;
const CR = 0x0d;

/**
 * Whether bytes may get lost behind a request whose offer to upgrade is declined. Node's parser stops behind such a request, and what
 * it has not read of that piece nobody gets: the next piece would be read from the middle of a request, as one that nobody has sent.
 * False only where it is certain that nothing is lost: without a body, and with a head that ends with its piece. To be called while the
 * request is being parsed.
 */
export function mayLoseNext(req: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers;
  const bytes = bytesBeingParsed(req.socket);
  if (bytes === undefined || coding !== undefined || length !== '0') return true;
  // The end of the head came in two pieces, so that another end could be taken for it.
  if (bytes[0] === CR || bytes[0] === LF) return true;
  return bytes.indexOf(END_OF_HEAD, 0, 'latin1') !== bytes.length - END_OF_HEAD.length;
}
