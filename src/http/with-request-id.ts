import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ErrorCode } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import type { RequestIds } from './request-id.ts';

/** What an app records about a request while it serves it. Express keeps it on the response, as `locals`. */
export interface RequestNotes {
  readonly requestId: string;
  /** The endpoint, by its name in OpenAPI. */
  operation?: string;
  /** Code of the error that was sent. */
  errorCode?: ErrorCode;
  /** Who made the request, once that is known. */
  actor?: string;
}

/** Records the error of a response that the app did not send itself. Does nothing if no app has begun to serve the request. */
export function noteError(res: ServerResponse, code: ErrorCode): void {
  if ('locals' in res) (res.locals as RequestNotes).errorCode = code;
}

/** A request to an app whose response is over. */
export interface ServedRequest {
  readonly requestId: string;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  /** 0 when the client left before there was a response. */
  readonly status: number;
  readonly durationMs: number;
  readonly notes: Readonly<RequestNotes>;
}

type App = (req: IncomingMessage, res: ServerResponse) => void;

/** Sends an `X-Request-Id` with every response of an app, and calls `onServed`, which must not throw, once the response is over. */
export function withRequestId(
  app: App,
  {
    requestIds,
    clock,
    onServed,
  }: {
    readonly requestIds: Pick<RequestIds, 'idOf'>;
    readonly clock: Clock;
    readonly onServed: (request: ServedRequest) => void;
  },
): App {
  return (req, res) => {
    const requestId = requestIds.idOf(req);
    const startedAtMs = clock.monotonicMs();
    // The app may change the URL while it routes.
    const [path = ''] = (req.url ?? '').split('?', 1);
    const notes: RequestNotes = { requestId };
    Reflect.set(res, 'locals', notes);
    res.setHeader('X-Request-Id', requestId);
    res.once('close', () => {
      onServed({
        requestId,
        method: req.method ?? '',
        path,
        status: res.headersSent ? res.statusCode : 0,
        durationMs: clock.monotonicMs() - startedAtMs,
        notes,
      });
    });
    app(req, res);
  };
}
