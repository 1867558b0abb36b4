import type { IncomingMessage } from 'node:http';
import { TollgateError } from '../errors.ts';
import { bytesBeingParsed } from '../http/node-internals.ts';
import { hasOption } from './parsing/connection-header.ts';

/** Only WebSocket is upgraded; any other `Upgrade` header is ignored (RFC 9110 section 7.8). */
export function isWebSocketUpgrade(req: IncomingMessage): boolean {
  return (
    req.httpVersionMinor === 1 &&
    req.headers.upgrade?.toLowerCase() === 'websocket' &&
    // Checked here, because Node's parser treats `Proxy-Connection`, which is not standard, like `Connection`.
    hasOption(req.headers.connection, 'upgrade')
  );
}

/** Why an upgrade is rejected; undefined if it may be one. */
export function upgradeFault(req: IncomingMessage): TollgateError | undefined {
  if (req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined) {
    return new TollgateError('bad_request', 'An upgrade must not have a body.');
  }
  if (req.method !== 'GET') return new TollgateError('bad_request', 'A WebSocket upgrade must be a GET.');
  return undefined;
}

const END_OF_HEAD = '\r\n\r\n';
const LF = 0x0a;
const CR = 0x0d;

/**
 * Whether bytes may get lost after a request whose offer to upgrade is declined. Node's parser stops after such a request and drops the
 * rest of that chunk: the next chunk would be parsed from the middle of a request (request smuggling). False only where it is certain
 * that nothing is lost: the request has no body and its head ends with its chunk. To be called while the request is being parsed.
 */
export function mayLosePipelinedBytes(req: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers;
  const bytes = bytesBeingParsed(req.socket);
  if (bytes === undefined || coding !== undefined || length !== '0') return true;
  // The end of the head arrived in two chunks, so a match in this chunk may be the end of another head.
  if (bytes[0] === CR || bytes[0] === LF) return true;
  return bytes.indexOf(END_OF_HEAD, 0, 'latin1') !== bytes.length - END_OF_HEAD.length;
}
