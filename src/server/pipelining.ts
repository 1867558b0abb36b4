import type { IncomingMessage } from 'node:http';
import { lingerAfterResponse } from '../http/connections/lingering-close.ts';
import type { RawHeadResponse } from '../http/raw-head-response.ts';
import type { WaitingRequests } from './waiting-requests.ts';

type Serve = (req: IncomingMessage, res: RawHeadResponse) => void;

/**
 * Serves the requests of a connection one after the other, in their order: Node hands them out as they arrive, but only safe ones might
 * be served side by side (RFC 9112 section 9.3.2). Each pipelined request waits for a turn of the event loop, so that a connection with
 * thousands of them in its buffer is served no more often than a connection that sends one at a time.
 */
export function serveInOrder(serve: Serve, waiting: WaitingRequests): Serve {
  const serveNext = (req: IncomingMessage, res: RawHeadResponse): void => {
    // The client may have left while the request waited: its response has closed already, and nothing would end it again.
    if (req.socket.destroyed) return;
    waiting.delete(req);
    if (!res.destroyed) serve(req, res);
  };
  return (req, res) => {
    // Node gives a response its socket once those before it are written.
    if (res.socket !== null) serve(req, res);
    else if (waiting.add(req)) {
      // If an earlier response closes the connection, this client is probably still sending: a reset could destroy that response.
      lingerAfterResponse(req.socket);
      res.once('socket', () => setImmediate(serveNext, req, res));
    }
  };
}
