import type { ServerResponse } from 'node:http';
import { closeAfterResponse, hasMuchToSend } from '../http/connections/unread-body.ts';

/** Responds to `OPTIONS *`, which no backend gets: the methods that the port allows (RFC 9110 section 9.3.7). */
export function sendServerOptions(res: ServerResponse, methods: readonly string[]): void {
  if (hasMuchToSend(res.req)) closeAfterResponse(res);
  res.writeHead(204, { Allow: methods.join(', ') }).end();
}
