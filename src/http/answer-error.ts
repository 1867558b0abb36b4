import { type IncomingMessage, STATUS_CODES as reasons, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorAnswer, errorAnswer } from './error-answers.ts';
import { fieldLine, type LineResponse } from './line-response.ts';
import { lingerAfterAnswer, lingeringClose } from './lingering-close.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const JSON_TYPE_LINE = fieldLine('Content-Type', JSON_TYPE);

/**
 * Answers with a complete error, head and body in one write. When much of the request's body is still to come the connection is closed
 * politely afterwards. Does nothing when an answer has begun.
 */
export function answerError(res: ServerResponse, { status, headers, body }: ErrorAnswer): void {
  if (!mayAnswer(res)) return;
  const length = Buffer.byteLength(body);
  res.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': length, ...headers });
  endWith(res, body, length);
}

/** The same, with lines of further fields in its head. */
export function answerErrorWith(
  res: LineResponse,
  { status, headers, body }: ErrorAnswer,
  lines: string,
): void {
  if (!mayAnswer(res)) return;
  const length = Buffer.byteLength(body);
  let head = JSON_TYPE_LINE;
  for (const name in headers) head += fieldLine(name, headers[name] ?? '');
  res.writeLines(status, undefined, head + lines, ['Content-Length', String(length)]);
  endWith(res, body, length);
}

function mayAnswer(res: ServerResponse): boolean {
  if (res.headersSent || res.destroyed) return false;
  if (hasMuchToSend(res.req)) closeAfterAnswer(res);
  return true;
}

/** Of ASCII the bytes are the same in both, and those of latin1 are written faster. */
function endWith(res: ServerResponse, body: string, length: number): void {
  res.end(body, length === body.length ? 'latin1' : 'utf8');
}

/** Answers an error and closes the connection after it: for heads that leave in doubt where the next request begins. */
export function refuseConnection(res: ServerResponse, error: unknown): void {
  closeAfterAnswer(res);
  answerError(res, errorAnswer(error));
}

/** Answers an error where there is no response object, only the socket: nothing else is ever read from it. */
export function refuseOnSocket(socket: Socket, error: unknown): void {
  const { status, headers, body } = errorAnswer(error);
  let head = `HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}\r\n${JSON_TYPE_LINE}`;
  for (const name in headers) head += fieldLine(name, headers[name] ?? '');
  head += `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  if (socket.writable) socket.end(head + body);
  lingeringClose(socket);
}

/** A body up to this size that is still on its way is read and thrown away, to keep the connection. Bytes. */
const WORTH_READING_BYTES = 64 * 1024;

/** Whether the client may still be sending more than is worth reading for nothing. */
export function hasMuchToSend(req: IncomingMessage): boolean {
  if (req.complete) return false;
  const { 'transfer-encoding': coding, 'content-length': length, expect } = req.headers;
  // A client that was to wait for a 100 may send its body or not, and only the end of the connection tells which.
  if (coding !== undefined || expect !== undefined) return true;
  return length !== undefined && Number(length) > WORTH_READING_BYTES;
}

/** The answer about to be written says `Connection: close`, and what remains of the request is read but thrown away. */
export function closeAfterAnswer(res: ServerResponse): void {
  res.shouldKeepAlive = false;
  if (res.socket !== null) lingerAfterAnswer(res.socket);
  res.req.resume();
}
