import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../platform/clock.ts';
import type { RequestIds } from './request-id.ts';

/** What is told of a request to an app when its answer is over. */
export interface AnsweredRequest {
  readonly requestId: string;
  readonly method: string;
  /** Without query. */
  readonly path: string;
  /** 0 when the client left before there was an answer. */
  readonly status: number;
  readonly durationMs: number;
}

type App = (req: IncomingMessage, res: ServerResponse) => void;

/** Names every request to an app in its answer, and tells of it once, when the answer is over. `answered` must not throw. */
export function identified(
  app: App,
  {
    requestIds,
    clock,
    answered,
  }: {
    readonly requestIds: Pick<RequestIds, 'idOf'>;
    readonly clock: Clock;
    readonly answered: (request: AnsweredRequest) => void;
  },
): App {
  return (req, res) => {
    const requestId = requestIds.idOf(req);
    const startedAtMs = clock.monotonicMs();
    // The app may change the URL while it routes.
    const [path = ''] = (req.url ?? '').split('?', 1);
    res.setHeader('X-Request-Id', requestId);
    res.once('close', () => {
      answered({
        requestId,
        method: req.method ?? '',
        path,
        status: res.headersSent ? res.statusCode : 0,
        durationMs: clock.monotonicMs() - startedAtMs,
      });
    });
    app(req, res);
  };
}
