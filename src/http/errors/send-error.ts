import { STATUS_CODES as reasons, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { lingeringClose } from '../connections/lingering-close.ts';
import { closeAfterResponse, hasMuchToSend } from '../connections/unread-body.ts';
import { headerLine, type RawHeadResponse } from '../node-internals.ts';
import type { ErrorResponse } from './error-responses.ts';

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

/** Of a response without a response object. */
export interface SocketResponse {
  /** Undefined: it has none. */
  readonly requestId?: string | undefined;
  /** The method of the request, as far as it is known: the response to a HEAD has no body. */
  readonly method?: string | undefined;
}

/** Sends an error on a socket that has no response object, and closes it. Later requests on it are not served. */
export function rejectOnSocket(
  socket: Socket,
  { status, headers, body }: ErrorResponse,
  { requestId, method }: SocketResponse = {},
): void {
  let head = `HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}\r\n${JSON_TYPE_LINE}`;
  if (requestId !== undefined) head += headerLine('X-Request-Id', requestId);
  for (const name in headers) head += headerLine(name, headers[name] ?? '');
  head += `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  if (socket.writable) socket.end(method === 'HEAD' ? head : head + body);
  lingeringClose(socket);
}
