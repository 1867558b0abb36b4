import { type IncomingMessage, STATUS_CODES as reasons, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ErrorAnswer, errorAnswer } from './error-answers.ts';
import { lingerAfterAnswer, lingeringClose } from './lingering-close.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Answers with a complete error, head and body in one write. `extraFields` is a flat list of names and values. When much of the
 * request's body is still to come the connection is closed politely afterwards. Does nothing when an answer has begun.
 */
export function answerError(
  res: ServerResponse,
  answer: ErrorAnswer,
  extraFields: readonly string[] = [],
): void {
  if (res.headersSent || res.destroyed) return;
  if (hasMuchToSend(res.req)) closeAfterAnswer(res);
  const length = Buffer.byteLength(answer.body);
  const fields = ['Content-Type', JSON_TYPE, 'Content-Length', String(length)];
  for (const name in answer.headers) fields.push(name, answer.headers[name] ?? '');
  for (const part of extraFields) fields.push(part);
  res.writeHead(answer.status, fields);
  // Of ASCII the bytes are the same in both, and those of latin1 are written faster.
  res.end(answer.body, length === answer.body.length ? 'latin1' : 'utf8');
}

/** Answers an error and closes the connection after it: for heads that leave in doubt where the next request begins. */
export function refuseConnection(res: ServerResponse, error: unknown): void {
  closeAfterAnswer(res);
  answerError(res, errorAnswer(error));
}

/** Answers an error where there is no response object, only the socket: nothing else is ever read from it. */
export function refuseOnSocket(socket: Socket, error: unknown): void {
  const { status, headers, body } = errorAnswer(error);
  let head = `HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}\r\nContent-Type: ${JSON_TYPE}\r\n`;
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
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
