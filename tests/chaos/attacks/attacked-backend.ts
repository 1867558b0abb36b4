import { createServer } from 'node:http';
import { ListeningSockets } from '../../../src/server/listening-sockets.ts';

// node tests/chaos/attacks/attacked-backend.ts: a backend with what attackers like, a large body, a path that hangs, and upgrades. It
// is a process of its own, so that what it does for attackers takes no time from the clients that are measured. Writes its port.

const LARGE = Buffer.alloc(4 * 1024 * 1024);

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
const { port } = await new ListeningSockets(server).listen({ port: 0, host: '127.0.0.1', sharesPort: false });
process.stdout.write(`${port}\n`);
