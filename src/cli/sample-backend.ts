import { createServer, type Server } from 'node:http';

/**
 * A small backend to try the gateway with. It responds to every request with what it received, with the status of `?status=` in the
 * query, or else 200. It shows only the end of the `x-api-key`, because a backend must not repeat credentials.
 */
export function createSampleBackend(): Server {
  return createServer((req, res) => {
    let receivedBytes = 0;
    req.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length;
    });
    req.on('end', () => {
      const apiKey = req.headers['x-api-key'];
      const response = {
        message: 'Hello from the sample backend.',
        method: req.method,
        path: req.url,
        receivedBytes,
        xApiKey: typeof apiKey === 'string' ? `…${apiKey.slice(-4)}` : null,
      };
      res
        .writeHead(askedStatus(req.url), { 'content-type': 'application/json; charset=utf-8' })
        .end(`${JSON.stringify(response)}\n`);
    });
  });
}

/** The requested final status. It is 200 if none is requested, or one that allows no body. */
function askedStatus(url: string | undefined): number {
  const [, status] = /[?&]status=([2-5]\d\d)(?:&|$)/.exec(url ?? '') ?? [];
  return status === undefined || ['204', '205', '304'].includes(status) ? 200 : Number(status);
}

if (import.meta.main) {
  const port = Number(process.env.PORT ?? '3000');
  const server = createSampleBackend().listen(port);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => server.close());
}
