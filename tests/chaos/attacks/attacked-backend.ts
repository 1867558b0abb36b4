import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const LARGE = Buffer.alloc(4 * 1024 * 1024);

/** A backend with what attackers like: a large body, a path that hangs, and upgrades. */
export async function startAttackedBackend(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const server = createServer((req, res) => {
    req.resume();
    if (req.url === '/hang') return;
    res.end(req.url === '/large' ? LARGE : 'ok');
  });
  server.on('upgrade', (_req, socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
