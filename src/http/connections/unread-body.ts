import type { IncomingMessage, ServerResponse } from 'node:http';
import { lingerAfterResponse } from './lingering-close.ts';

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
