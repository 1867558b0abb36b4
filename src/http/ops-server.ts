import { createServer, type Server, type ServerResponse } from 'node:http';

/** What the ops port shows. */
export interface OpsSources {
  readonly readiness: () => Promise<{
    readonly ready: boolean;
    readonly components: Readonly<Record<string, string>>;
  }>;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

/**
 * The port for kubelet and Prometheus: `/livez` (the event loop turns), `/readyz` (every component answers; names those that don't)
 * and `/metrics`. It is a port of its own because these paths would hide the backend's on the public one.
 */
export function createOpsServer(sources: OpsSources): Server {
  const routes: Readonly<Record<string, (res: ServerResponse) => Promise<void>>> = {
    '/livez': async (res) => sendJson(res, 200, { status: 'ok' }),
    '/readyz': async (res) => {
      const report = await sources.readiness();
      sendJson(res, report.ready ? 200 : 503, {
        status: report.ready ? 'ready' : 'not ready',
        components: report.components,
      });
    },
    '/metrics': async (res) => {
      const { contentType, text } = await sources.metrics();
      res.writeHead(200, { 'content-type': contentType }).end(text);
    },
  };
  return createServer((req, res) => {
    const route = routes[(req.url ?? '').split('?', 1)[0] ?? ''];
    if (route === undefined)
      return sendJson(res, 404, {
        error: 'The ops port has /livez, /readyz and /metrics.',
        code: 'not_found',
      });
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('allow', 'GET, HEAD');
      return sendJson(res, 405, { error: 'The ops port is only read.', code: 'method_not_allowed' });
    }
    route(res).catch(() =>
      sendJson(res, 500, { error: 'The answer could not be made.', code: 'internal_error' }),
    );
  });
}

function sendJson(res: ServerResponse, status: number, body: unknown): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  res
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
    .end(JSON.stringify(body));
}
