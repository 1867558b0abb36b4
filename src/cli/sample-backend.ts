import { createServer, type Server } from 'node:http';
import { pathToFileURL } from 'node:url';

/**
 * A small backend to try the gateway with: it responds to every request with what it saw. Only the end of the `x-api-key` is shown, as a
 * backend's response has no business repeating credentials.
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
        .writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
        .end(`${JSON.stringify(response)}\n`);
    });
  });
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const port = Number(process.env.PORT ?? '3000');
  const server = createSampleBackend().listen(port);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => server.close());
}
