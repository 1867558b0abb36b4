import { Agent, createServer, request } from 'node:http';
import { Pool } from 'undici';

/**
 * The least that Node does for a request that it forwards: no key, no limit, no checks. Not fit for use.
 * Arguments: port, port of the backend, and the client (`node:http` or `undici`).
 */
const [port, backendPort, client] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 256 });
const pool = new Pool(`http://127.0.0.1:${backendPort}`, { connections: 256 });

const server = createServer({ keepAliveTimeout: 300_000 }, (req, res) => {
  const path = req.url ?? '/';
  const { method = 'GET', headers } = req;
  if (client === 'undici') {
    pool.stream(
      { path, method, headers: { host: headers.host ?? '' } },
      (response) => {
        res.writeHead(response.statusCode, response.headers);
        return res;
      },
      (error) => error && res.destroy(),
    );
    return;
  }
  const forwarded = request({ agent, port: Number(backendPort), host: '127.0.0.1', path, method, headers });
  forwarded.once('response', (response) => {
    res.writeHead(response.statusCode ?? 502, response.rawHeaders);
    response.pipe(res);
  });
  forwarded.once('error', () => res.destroy());
  req.pipe(forwarded);
});
server.maxRequestsPerSocket = 0;
server.listen(Number(port), '127.0.0.1');
