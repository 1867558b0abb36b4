import { type IncomingMessage, STATUS_CODES as reasons, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { lingerAfterResponse, lingeringClose } from '../connections/lingering-close.ts';
import { headerLine, type RawHeadResponse } from '../raw-head-response.ts';
import { type ErrorResponse, errorResponse } from './error-responses.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const JSON_TYPE_LINE = headerLine('Content-Type', JSON_TYPE);

/**
 * Responds with a complete error, head and body in one write. If much of the request's body is still to come, the connection is closed
 * afterwards, by `lingeringClose`. Does nothing when a response has begun.
 */
export function sendError(res: ServerResponse, { status, headers, body }: ErrorResponse): void {
  if (!maySend(res)) return;
  const length = Buffer.byteLength(body);
  // `writeHead` would replace what the response varies by already.
  const vary = [res.getHeader('Vary'), headers.Vary].filter((value) => value !== undefined).join(', ');
  const all = { 'Content-Type': JSON_TYPE, 'Content-Length': length, ...headers };
  res.writeHead(status, vary === '' ? all : { ...all, Vary: vary });
  endWith(res, body, length);
}

/** Like `sendError`, with further header lines. */
export function sendErrorWithLines(
  res: RawHeadResponse,
  { status, headers, body }: ErrorResponse,
  lines: string,
): void {
  if (!maySend(res)) return;
  const length = Buffer.byteLength(body);
  let head = headers['Content-Type'] === undefined ? JSON_TYPE_LINE : '';
  for (const name in headers) head += headerLine(name, headers[name] ?? '');
  res.writeLines(status, undefined, head + lines, ['Content-Length', String(length)]);
  endWith(res, body, length);
}

function maySend(res: ServerResponse): boolean {
  if (res.headersSent || res.destroyed) return false;
  if (hasMuchToSend(res.req)) closeAfterResponse(res);
  return true;
}

/** ASCII has the same bytes in latin1 and UTF-8, and Node writes latin1 faster. */
function endWith(res: ServerResponse, body: string, length: number): void {
  res.end(body, length === body.length ? 'latin1' : 'utf8');
}

/** Sends an error and closes the connection after it: for requests after which the start of the next one is uncertain. */
export function rejectAndClose(res: ServerResponse, response: ErrorResponse): void {
  closeAfterResponse(res);
  sendError(res, response);
}

/** Sends an error on a socket that has no response object, and closes it. Later requests on it are not served. */
export function rejectOnSocket(socket: Socket, error: unknown, requestId: string): void {
  const { status, headers, body } = errorResponse(error);
  let head = `HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}\r\n${JSON_TYPE_LINE}`;
  head += headerLine('X-Request-Id', requestId);
  for (const name in headers) head += headerLine(name, headers[name] ?? '');
  head += `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  if (socket.writable) socket.end(head + body);
  lingeringClose(socket);
}

/** A body up to this size that is still on its way is read and discarded, to keep the connection. Bytes. */
const WORTH_READING_BYTES = 64 * 1024;

/** Whether the client may still send more than is worth reading and discarding. */
export function hasMuchToSend(req: IncomingMessage): boolean {
  return !req.complete && announcesMuch(req.rawHeaders);
}

/** Reads the raw headers: libraries write to `req.headers`. */
function announcesMuch(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase();
    // A client that waits for a 100 may send its body or not, and only the end of the connection shows which.
    if (name === 'transfer-encoding' || name === 'expect') return true;
    if (name === 'content-length' && Number(rawHeaders[i + 1]) > WORTH_READING_BYTES) return true;
  }
  return false;
}

/** Adds `Connection: close` to the response that is about to be written, and discards the rest of the request. */
export function closeAfterResponse(res: ServerResponse): void {
  res.shouldKeepAlive = false;
  if (res.socket !== null) lingerAfterResponse(res.socket);
  res.req.resume();
}
